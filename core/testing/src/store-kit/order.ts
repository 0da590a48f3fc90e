import type { Json } from '@svc/core/contracts'

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** Keys in the order of their UTF-8 bytes, which differs from that of JavaScript and of dictionaries. */
export const KEYS = [
  '!',
  '0',
  '10',
  '9',
  'A',
  'Z',
  '_',
  'a',
  'a\u0001',
  'a b',
  'a.b',
  'aa',
  'ab',
  'b',
  'z',
  '~',
  'a\u0301',
  '\u00e1',
  'é',
  'ﬀ',
  '￿',
  '𐀀',
  '😀',
].sort(byBytes)

/** Values of an index in the order of the contract. */
export const VALUES: readonly Json[] = [
  null,
  false,
  true,
  -Number.MAX_VALUE,
  -(2 ** 53),
  -10,
  -9,
  -1.5,
  -Number.MIN_VALUE,
  0,
  Number.MIN_VALUE,
  0.5,
  1,
  2,
  10,
  2 ** 53,
  Number.MAX_VALUE,
  '',
  '\u0000',
  '\u0000\u0000',
  '\u0001',
  '\u0002',
  '\u0003',
  ' ',
  '10',
  '9',
  'A',
  'a',
  'a\u0000',
  'a\u0000b',
  'a\u0001',
  'ab',
  'b',
  'é',
  '￿',
  '𐀀',
  '😀',
]

/** Shuffles the items reproducibly. */
export const shuffled = <T>(items: readonly T[]): T[] =>
  items
    .map((item, i) => [(i * 7919) % 104_729, item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item)
