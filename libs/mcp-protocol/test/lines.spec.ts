import { PassThrough } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { readLines } from '@svc/mcp-protocol'
import { expect } from 'chai'

function reading(most: number) {
  const stream = new PassThrough()
  const seen: string[] = []
  readLines(stream, most, {
    line: text => seen.push(text),
    tooLong: (begin, end) => seen.push(`too long: ${begin.slice(0, 5)} … ${end.slice(-5)}`),
    endless: () => seen.push('endless'),
  })
  return { stream, seen }
}

describe('lines of a program that is not trusted', () => {
  it('come whole, however their bytes are cut', () => {
    const { stream, seen } = reading(100)
    for (const byte of Buffer.from('one\ntwö\n\nthree\n')) stream.emit('data', Buffer.from([byte]))
    stream.emit('data', Buffer.from('four\nfi'))
    stream.emit('data', Buffer.from('ve\nsix\n'))
    expect(seen).to.deep.equal(['one', 'twö', 'three', 'four', 'five', 'six'])
  })

  it('that are too long are left out, with their begin and end', () => {
    const { stream, seen } = reading(10)
    for (const part of ['begin', ' and on', ' and on', ' to the end', '\nnext\n']) stream.emit('data', Buffer.from(part))
    expect(seen).to.deep.equal(['too long: begin … e end', 'next'])
  })

  it('that come byte by byte take little more memory than their length', () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const { stream, seen } = reading(2_000_000)
    collect()
    const before = process.memoryUsage().heapUsed
    // as a socket gives them: each piece has memory of its own
    for (let at = 0; at < 200_000; at++) stream.emit('data', Buffer.allocUnsafeSlow(1).fill('x'))
    collect()
    const grown = process.memoryUsage().heapUsed - before
    stream.emit('data', Buffer.from('\n'))
    expect(seen[0]).to.have.length(200_000)
    expect(grown).to.be.below(5_000_000)
  })
})
