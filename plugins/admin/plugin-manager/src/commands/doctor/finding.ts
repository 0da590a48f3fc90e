import { styleText } from 'node:util'
import { oneLine, wrapped } from '@svc/cli/command'

/** A finding of `svc doctor`. */
export interface DoctorFinding {
  /** The name of the check: `store`, `provider local`. */
  readonly name: string
  readonly state: 'ok' | 'warn' | 'fail'
  readonly message: string
  readonly hint?: string
  /** File and line. */
  readonly where?: string
}

export const ok = (name: string, message: string): DoctorFinding => ({ name, state: 'ok', message })
export const warn = (name: string, message: string, hint: string): DoctorFinding => ({ name, state: 'warn', message, hint })
export const fail = (name: string, message: string, hint?: string): DoctorFinding => ({
  name,
  state: 'fail',
  message,
  ...(hint === undefined ? {} : { hint }),
})

const GB = 1e9
const MB = 1e6

/** Free space that a disk with a store should have. */
const SCARCE = 1 * GB
const SPENT = 100 * MB

const bytes = (count: number) => (count >= GB ? `${(count / GB).toFixed(1)} GB` : `${Math.floor(count / MB)} MB`)

/** Describes the free space; with a finding if it is low. */
export function freeSpace(name: string, free: number): { readonly text: string; readonly finding?: DoctorFinding } {
  const text = `${bytes(free)} free`
  const hint = 'Free some space on that disk: svc cannot store anything on a full disk'
  if (free < SPENT) return { text, finding: fail(name, `only ${text}`, hint) }
  return free < SCARCE ? { text, finding: warn(name, `only ${text}`, hint) } : { text }
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const

/** Formats findings, with a summary. */
export function findingsText(findings: readonly DoctorFinding[]): string {
  const names = Math.max(...findings.map(finding => finding.name.length))
  const indent = names + STATE + 4
  const width = Math.max(40, (process.stdout.columns || 100) - indent)
  const lines = findings.map(({ name, state, message, hint, where }) => {
    const word = styleText(COLOURS[state], state.padEnd(STATE), { stream: process.stdout })
    const said = [message, where, hint].flatMap(text => (text ? wrapped(oneLine(text), width) : []))
    return `${word}  ${name.padEnd(names)}  ${said.join(`\n${' '.repeat(indent)}`)}`
  })
  const count = (state: DoctorFinding['state']) => findings.filter(finding => finding.state === state).length
  return `${lines.join('\n')}\n\n${summary(count('fail'), count('warn'))}`
}

const STATE = 'fail'.length

function summary(fails: number, warns: number): string {
  if (fails + warns === 0) return 'All checks passed.'
  const failures = fails === 0 ? 'Nothing fails' : `${fails} ${fails === 1 ? 'thing fails' : 'things fail'}`
  return `${failures}, ${warns} ${warns === 1 ? 'is' : 'are'} to be looked at.`
}
