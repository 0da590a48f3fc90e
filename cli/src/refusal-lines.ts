import type { LogOptions } from '@svc/core'
import { visible } from './command/text.ts'

/** The log of a host inside a command, of which a person is told what isolated plugins were refused: they themselves see a variable that is not set, a host that cannot be reached. */
export const REFUSALS: LogOptions = { level: 'warn', destination: { write: line => void process.stderr.write(refusalIn(line)) } }

function refusalIn(line: string): string {
  const { plugin, of, msg, hint } = JSON.parse(line) as { readonly [fact: string]: unknown }
  if (plugin !== '@svc/plugin-isolation' || of === undefined) return ''
  return [`warning: ${String(msg)}`, ...(typeof hint === 'string' ? [`  ${hint}`] : [])]
    .map(text => `${visible(text)}\n`)
    .join('')
}
