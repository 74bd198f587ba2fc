/** Bodies in which serialisers differ: numbers, strings, the order of keys, duplicates, empty values, white space. */

const NUMBERS = [
  ...['1e3', '39.0', '9007199254740993', '-0', '-0.0', '1e22', '1e-7', '0.1', '123456789012345680000', '1E+2'],
  ...['0', '-1.5', '100', '1.10', '5e-324', '1.7976931348623157e308', '0.0001', '0.00001', '1.5e-5', '2.5E-10'],
  ...['1e14', '1e15', '1e16', '1e17', '1e21', '1234567890123456.0', '12345678901234567.0', '-1e20'],
  ...['9223372036854775807', '9223372036854775808', '-9223372036854775808', '-9223372036854775809', '1e-400'],
]

export const BODIES: Readonly<Record<string, string>> = {
  message: '{"type":"track","userId":"u-1","event":"Order Completed","properties":{"total":12.5,"items":["a","b"]}}',
  numbers: `{"numbers":[${NUMBERS.join(',')}]}`,
  'numbers that are no double': '{"large":1E400,"small":-1E400}',
  strings: String.raw`{"text":"déjà vu ☃ 🎉 <a href='x'>&\"\/</a> \u2028\u2029 \u0000\u0001\u001f\b\f\n\r\t\\\u0041 é ${'\u007f\u0080\u2028\uffff'}"}`,
  'lone surrogates': String.raw`{"text":"\ud800","more":"x\uDC00y"}`,
  keys: '{"b":1,"10":2,"9":3,"a":4,"é":5,"Z":6,"\uffee":7,"🎉":8,"4294967295":9,"4294967294":10,"01":11,"-1":12,"1.5":13}',
  'hostile keys': '{"constructor":{"prototype":1},"__proto__":{"toString":2},"":3}',
  duplicates: String.raw`{"b":1,"a":{"x":1,"x":2},"b":3,"\u0061":[4]}`,
  empty: '{"a":{},"b":[],"c":[{},[]],"d":{"0":1,"1":2},"e":{"1":1,"0":2},"f":null,"g":true,"h":false,"i":""}',
  spaces: '\n{ "a" : [ 1 , 2.50 ] ,\r\n\t"b" : { } }\n',
  list: '[{"type":"track","v":1.0}, {"type":"page"}]',
}
