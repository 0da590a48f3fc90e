import type { Yielder } from '@svc/core'

const NEAR = 3
const SHOWN = 160
/** Characters of a line, and of what is sought, that are compared. */
const COMPARED = 2000
/** Lines that are not empty and are looked at. */
const LOOKED_AT = 200_000
const NEWLINE = 10

/** Where a text nearly is: what differs in blanks only, or else the lines that begin it. Bounded, and others work in between. */
export async function nearby(bytes: Buffer, oldText: string, breath: Yielder): Promise<string> {
  const wanted = oldText.slice(0, COMPARED).split('\n').map(plain).find(Boolean)
  if (wanted === undefined) return ''
  const ends = bytes.includes('\r\n') && !oldText.includes('\r\n') ? ' Lines of this file end with \\r\\n.' : ''
  const found: string[] = []
  let [line, looked] = [0, 0]
  for (let at = 0; at < bytes.length && found.length < NEAR && looked < LOOKED_AT; ) {
    if (breath.isDue()) await breath.take()
    line++
    const newline = bytes[at] === NEWLINE ? at : bytes.indexOf(NEWLINE, at)
    const end = newline === -1 ? bytes.length : newline
    if (end > at) {
      looked++
      const text = bytes.toString('utf8', at, Math.min(end, at + COMPARED))
      if (isNear(plain(text), wanted)) found.push(`${line}: ${cut(text)}`)
    }
    at = end + 1
  }
  return found.length === 0 ? ends : `${ends} Near it, by line number:\n${found.join('\n')}`
}

const plain = (line: string) => line.replace(/\s+/g, ' ').trim()
const cut = (line: string) => (line.length > SHOWN ? `${line.slice(0, SHOWN)}…` : line)
const isNear = (line: string, wanted: string) =>
  line === wanted || (wanted.length > 3 && line.includes(wanted)) || line.toLowerCase() === wanted.toLowerCase()
