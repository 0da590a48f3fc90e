import { manyMatches, noMatch } from './errors.ts'

/** What an edit did. */
export interface Edited {
  readonly text: string
  readonly replacements: number
  /** The line of the first replacement. */
  readonly line: number
}

const NEAR = 3
const SHOWN = 160

/** Replaces a piece of text that must be there once, or every time with `all`. Throws EDIT_NO_MATCH, EDIT_MANY_MATCHES. */
export function editText(path: string, text: string, oldText: string, newText: string, all: boolean): Edited {
  const places = placesOf(text, oldText)
  if (places.length === 0) throw noMatch(path, nearby(text, oldText))
  if (places.length > 1 && !all) throw manyMatches(path, places.length, linesAt(text, places))
  const pieces = text.split(oldText)
  return { text: pieces.join(newText), replacements: places.length, line: lineAt(text, places[0]!) }
}

function placesOf(text: string, part: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) places.push(at)
  return places
}

const lineAt = (text: string, at: number): number => {
  let line = 1
  for (let next = text.indexOf('\n'); next !== -1 && next < at; next = text.indexOf('\n', next + 1)) line++
  return line
}

function linesAt(text: string, places: readonly number[]): string {
  const first = places.slice(0, 10).map(at => lineAt(text, at))
  return `${first.length === 1 ? 'line' : 'lines'} ${first.join(', ')}${places.length > first.length ? ', …' : ''}`
}

/** Where the text nearly is: what differs in blanks only, or else the lines that begin it. */
function nearby(text: string, oldText: string): string {
  const wanted = oldText.split('\n').map(plain).filter(Boolean)
  if (wanted.length === 0) return ''
  const lines = text.split('\n')
  const ends = text.includes('\r\n') && !oldText.includes('\r\n') ? ' Lines of this file end with \\r\\n.' : ''
  const found: string[] = []
  for (let at = 0; at < lines.length && found.length < NEAR; at++)
    if (isNear(plain(lines[at]!), wanted[0]!)) found.push(`${at + 1}: ${cut(lines[at]!)}`)
  return found.length === 0 ? ends : `${ends} Near it, by line number:\n${found.join('\n')}`
}

const plain = (line: string) => line.replace(/\s+/g, ' ').trim()
const cut = (line: string) => (line.length > SHOWN ? `${line.slice(0, SHOWN)}…` : line)
const isNear = (line: string, wanted: string) =>
  line === wanted || (wanted.length > 3 && line.includes(wanted)) || line.toLowerCase() === wanted.toLowerCase()
