import { createHash } from 'node:crypto'

/** Models' interfaces take names of at most so many characters. */
const MOST = 64
const HASH = 8
const FOREIGN = /[^A-Za-z0-9_-]/g

/**
 * The name by which a server's tool is known here: `<server>__<tool>`, of letters, digits, `_` and `-`, at most 64 characters. Where characters had to be replaced, or
 * it had to be cut, it ends in a hash of the whole, so that two of them differ still: `bridgedName('files', 'read_file')` is `files__read_file`.
 */
export function bridgedName(server: string, tool: string): string {
  const plain = `${server}__${tool}`
  const clean = plain.replace(FOREIGN, '_')
  if (clean === plain && plain.length <= MOST) return plain
  const hash = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, HASH)
  return `${clean.slice(0, MOST - HASH - 1)}_${hash}`
}
