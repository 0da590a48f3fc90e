import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const NODE_NAME = /^[\w-]{1,64}$/
const fileIn = (home: string) => join(home, 'node')

/** The name of this home, which it keeps over restarts; undefined before its first server. */
export function knownNodeId(home: string): string | undefined {
  try {
    const kept = readFileSync(fileIn(home), 'utf8').trim()
    return NODE_NAME.test(kept) ? kept : undefined
  } catch {
    // no server has started in this home
    return undefined
  }
}

/** The same; the first start of a home makes it. */
export function nodeIdOf(home: string): string {
  const known = knownNodeId(home)
  if (known !== undefined) return known
  const made = randomName()
  try {
    writeFileSync(fileIn(home), `${made}\n`, { mode: 0o600 })
  } catch {
    // A home that cannot be written, or a full disk: this start has a name of its own.
  }
  return made
}

/** Not a secret: node:crypto would delay the first worker by a tenth. */
export const randomName = () => Math.floor(Math.random() * 2 ** 52).toString(36)
