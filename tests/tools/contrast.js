// All visible texts of the page, placeholders among them, whose contrast with what is behind them is below 4.5.
() => {
  const channels = (colour) => {
    const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
    return [red, green, blue, alpha];
  };
  const light = ([red, green, blue]) => {
    const linear = [red, green, blue].map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = channels(getComputedStyle(one).backgroundColor);
      if (colour[3] === 1) return colour;
      if (colour[3] > 0) throw new Error(`half transparent: ${one.outerHTML}`);
    }
    return [255, 255, 255, 1];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const low = [];
  let texts = 0;
  const check = (text, element, part) => {
    texts += 1;
    const colours = [getComputedStyle(element, part).color, behind(element)];
    const [one, other] = [light(channels(colours[0])), light(colours[1])].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) low.push([text, ratio, element.className]);
  };
  for (const box of document.querySelectorAll('[placeholder]')) {
    if (box.checkVisibility()) check(box.placeholder, box, '::placeholder');
  }
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest(':disabled, legend')) continue;
    check(walker.currentNode.data, element);
  }
  return { texts, low };
};
