import { createHash } from 'node:crypto'
import type { Preset } from './presets.ts'

const LONGEST = 40
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** The id of a tool call as the server takes it: its own as it is, another's always turned into the same. */
export function callId(id: string, { callIdLength }: Preset): string {
  if (callIdLength === undefined) return id.length <= LONGEST ? id : shortened(id, LONGEST)
  return id.length === callIdLength && /^[A-Za-z0-9]+$/.test(id) ? id : shortened(id, callIdLength)
}

function shortened(id: string, length: number): string {
  const bytes = createHash('sha512').update(id).digest().subarray(0, length)
  return [...bytes].map(byte => LETTERS[byte % LETTERS.length]).join('')
}
