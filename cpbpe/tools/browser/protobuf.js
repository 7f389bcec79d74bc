'use strict';
// Protocol Buffers, the format of .model files: messages are written from fields, and taken apart into fields.

{
  // A message as bytes. A field is a list of its number and its value: bytes or text; true, false or an integer from 0;
  // a float, as a Float32Array of one; or the fields of an inner message. A field may also be bytes, which are copied.
  cpbpe.message = (fields) => {
    let made = new Uint8Array(1024);
    let size = 0;
    const room = (count) => {
      if (size + count <= made.length) return;
      const larger = new Uint8Array(2 * (size + count));
      larger.set(made);
      made = larger;
    };
    const copy = (bytes) => {
      room(bytes.length);
      made.set(bytes, size);
      size += bytes.length;
    };
    const integer = (number) => {
      room(10);
      let rest = number;
      for (; rest > 127; rest = Math.floor(rest / 128)) made[size++] = (rest % 128) | 128;
      made[size++] = rest;
    };
    const write = (field) => {
      if (field instanceof Uint8Array) {
        copy(field);
        return;
      }
      const [number, value] = field;
      const isInteger = typeof value === 'number' || typeof value === 'boolean';
      const isFloat = value instanceof Float32Array;
      integer(8 * number + (isInteger ? 0 : isFloat ? 5 : 2));
      if (isInteger) integer(Number(value));
      else if (isFloat) copy(new Uint8Array(value.buffer));
      else if (Array.isArray(value)) {
        // The length of a message comes before it, but is known only after it.
        const begin = size;
        value.forEach(write);
        const end = size;
        integer(end - begin);
        const length = made.slice(end, size);
        made.copyWithin(begin + length.length, begin, end);
        made.set(length, begin);
      } else {
        const bytes = typeof value === 'string' ? cpbpe.utf8(value) : value;
        integer(bytes.length);
        copy(bytes);
      }
    };
    fields.forEach(write);
    return made.slice(0, size);
  };

  // The fields of a message: each has its number, its bytes with that number in them (`all`), and its value, an integer
  // or bytes. Null if this is no message, or is cut off. `wanted`: the only number to look for, which is much faster.
  cpbpe.fields = (message, wanted = null) => {
    const found = [];
    let at = 0;
    const integer = () => {
      let number = 0;
      for (let unit = 1; at < message.length; unit *= 128) {
        number += (message[at] & 127) * unit;
        at += 1;
        if (message[at - 1] < 128) return number;
      }
      return NaN;
    };
    while (at < message.length) {
      const begin = at;
      const tag = integer();
      const kind = tag % 8;
      const value = kind === 0 || kind === 2 ? integer() : 0;
      const length = [0, 8, value, NaN, NaN, 4][kind]; // (groups, 3 and 4, are not used any more)
      at += length;
      if (!(at <= message.length)) return null;
      const number = Math.floor(tag / 8);
      if (wanted !== null && number !== wanted) continue;
      found.push({ number, all: message.subarray(begin, at), value: kind ? message.subarray(at - length, at) : value });
    }
    return found;
  };
}
