"""What the tests of the page show: a byte-level model, and a text that is markup."""

import cpbpe
from tests.bytes.models import made

EVIL = "<img src=x onerror=\"document.title='hit'\"><script>document.title='hit'</script>&amp;\"'`"
BYTES = cpbpe.Tokenizer.from_spec(made())
