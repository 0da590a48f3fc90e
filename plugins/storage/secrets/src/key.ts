import { createHash } from 'node:crypto'
import { keyInvalid, keyMissing } from './errors.ts'
import { readSmall } from './small-file.ts'

/** A key with its public id. */
export interface Key {
  readonly id: string
  readonly bytes: Buffer
}

/** The first key seals; the others only open what they sealed. */
export type SealingKeys = readonly [Key, ...Key[]]

export const KEY_VARIABLE = 'SVC_SECRETS_KEY'

const MAX_FILE_BYTES = 8192
const MAX_KEYS = 16

/** Where the keys are. */
export interface KeyPlace {
  readonly file: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Reads the keys: of the variable, else of the file. Throws SECRETS_KEY_MISSING and SECRETS_KEY_INVALID. */
export function readKeys({ file, env }: KeyPlace): SealingKeys {
  const variable = env[KEY_VARIABLE]
  if (variable !== undefined && variable.trim() !== '') return parseKeys(variable, KEY_VARIABLE)
  if (file === undefined) throw keyMissing()
  return parseKeys(textOf(file), 'secrets.key_file')
}

function textOf(file: string): string {
  try {
    return readSmall(file, MAX_FILE_BYTES).text
  } catch (error) {
    throw keyInvalid('secrets.key_file', (error as Error).message)
  }
}

/** Parses keys, separated by commas or white space. Lines that start with # are comments. */
function parseKeys(text: string, where: string): SealingKeys {
  const words = text
    .split('\n')
    .filter(line => !line.trim().startsWith('#'))
    .flatMap(line => line.split(/[\s,]+/))
    .filter(word => word !== '')
  if (words.length > MAX_KEYS) throw keyInvalid(where, `there are more than ${MAX_KEYS} keys`)
  const [first, ...others] = words.map((word, at) => keyOf(word, at, where))
  if (first === undefined) throw keyInvalid(where, 'it is empty')
  return [first, ...others]
}

function keyOf(word: string, at: number, where: string): Key {
  const isHex = /^[0-9a-f]{64}$/i.test(word)
  const isBase64 = /^[A-Za-z0-9+/_-]{43}=?$/.test(word)
  if (!isHex && !isBase64) throw keyInvalid(where, `key ${at + 1} is not 32 bytes as Base64 or hexadecimal digits`)
  const bytes = Buffer.from(word, isHex ? 'hex' : 'base64')
  if (new Set(bytes).size < 8) throw keyInvalid(where, `key ${at + 1} is not random`)
  return { id: createHash('sha256').update('svc secrets key').update(bytes).digest('hex').slice(0, 12), bytes }
}
