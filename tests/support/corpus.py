"""A small corpus in many scripts to train test models on. The sentences were written for this file."""

import random

SENTENCES = [
    "The old lighthouse keeper counted 1,024 ships before the winter of 1987 was over.",
    'She said: "don\'t wait for me" -- and then she waited (three hours, or maybe four).',
    "A tokenizer that forgets a space forgets who it was talking to.",
    "for (int i = 0; i < n; ++i) { total += values[i] * 3.14159; }",
    "def merge(left, right):\n    return left + right  # the whole trick",
    "Das Mädchen grüßte höflich, aber der müde Bäcker hörte es nicht.",
    "Où est passée la clé que j'avais posée près de la fenêtre, là-bas ?",
    "El niño corrió detrás del pingüino; mañana correrá otra vez.",
    "Žluťoučký kůň se napil vody a odešel směrem k řece.",
    "Zażółcone liście spadały cicho na ścieżkę za domem.",
    "Старый мост через реку скрипел, но всё ещё держался.",
    "Η θάλασσα ήταν ήρεμη και ο ουρανός γεμάτος αστέρια.",
    "今日は朝から雨が降っていたので、図書館で本を読みました。",
    "カタカナとひらがなと漢字がまざったテキストです。",
    "他昨天在市场买了三斤苹果和一只会说话的鸟。",
    "할머니는 저녁마다 마당에서 옛날이야기를 들려주셨다.",
    "جلس الرجل تحت الشجرة وقرأ رسالة قديمة من أخيه.",
    "הילדה ציירה בית קטן עם גג אדום ושמש גדולה.",
    "बच्चे नदी के किनारे पतंग उड़ा रहे थे और हँस रहे थे।",
    "แมวสีดำนอนหลับอยู่บนหลังคาตลอดบ่าย",
    "Caf\u00e9 is not the same bytes as Cafe\u0301, nor is \u212b as \u00c5 or A\u030a.",
    "ﬁrst ﬂoor, №５, ＡＢＣ１２３ ｶﾀｶﾅ ½ ² ㍿ ™ …",
    "Emoji: 🙂🙃 👩‍👩‍👧‍👦 🇩🇪 🦙🦙 — and a flag that waves 🏳️‍🌈.",
    "tabs\tand  double  spaces   and\u00a0no-break\u3000wide spaces",
    "aaaa aaaaaaaa abababab 0000 1111 2222 http://example.org/?q=a%20b&c=d#top",
    "▁ a literal mark, ▁▁ two of them, and ▁mark▁inside▁words",
    "abracadabra abracadabra alakazam hocus pocus abracadabra",
]


def lines(count: int = 1500, seed: int = 7) -> list[str]:
    """Sentences, and mixtures of their words, so that pieces recur with many different counts."""
    rng = random.Random(seed)
    words = [word for sentence in SENTENCES for word in sentence.split()]
    made = list(SENTENCES)
    while len(made) < count:
        made.append(" ".join(rng.choices(words, k=rng.randint(1, 14))))
    return made
