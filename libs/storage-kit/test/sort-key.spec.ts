import type { Json } from '@svc/core/contracts'
import { byBytes, sortKey } from '@svc/storage-kit'
import { expect } from 'chai'

/** Numbers from a seed, the same each time. */
function* numbers(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    yield state
  }
}

const RANK = { null: 0, false: 1, true: 2, number: 3, string: 4 }
const rank = (value: Json) =>
  RANK[(value === null || typeof value === 'boolean' ? String(value) : typeof value) as keyof typeof RANK]
/** The order of the contract, said plainly. */
function order(a: Json, b: Json): number {
  if (rank(a) !== rank(b)) return rank(a) - rank(b)
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return typeof a === 'string' && typeof b === 'string' ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : 0
}

const LETTERS = ['\u0000', '\u0001', '\u0002', '\u0003', 'a', 'b', 'é', '\ud7ff', '\ue000', '\uffff', '😀', '\u{10ffff}']

function valueFrom(random: Generator<number>): Json {
  const next = () => random.next().value as number
  const kind = next() % 8
  if (kind < 3) return [null, false, true][kind]!
  if (kind < 5) return (next() - 2 ** 30) * 10 ** ((next() % 40) - 20)
  return Array.from({ length: next() % 4 }, () => LETTERS[next() % LETTERS.length]!).join('')
}

describe('sort keys', () => {
  it('sort by bytes as the contract sorts values, then keys', () => {
    const random = numbers(7)
    for (let round = 0; round < 20_000; round++) {
      const [a, b] = [0, 1].map(() => ({
        x: valueFrom(random),
        y: valueFrom(random),
        key: JSON.stringify(valueFrom(random)),
      })) as [Pair, Pair]
      const wanted = Math.sign(order(a.x, b.x) || order(a.y, b.y) || order(a.key, b.key))
      const [ka, kb] = [a, b].map(({ x, y, key }) => sortKey(['x', 'y'], { x, y }, key)) as [string, string]
      expect(Math.sign(Buffer.compare(Buffer.from(ka), Buffer.from(kb))), JSON.stringify([a, b])).to.equal(wanted)
      const [ja, jb] = [byBytes(ka), byBytes(kb)]
      expect(ja < jb ? -1 : ja > jb ? 1 : 0, JSON.stringify([a, b])).to.equal(wanted)
    }
  })
})

interface Pair {
  readonly x: Json
  readonly y: Json
  readonly key: string
}
