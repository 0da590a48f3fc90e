import { styleText } from 'node:util'
import { oneLine, wrapped } from '@svc/cli/command'
import type { Finding } from './finding.ts'

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const

/** Findings below each other, and how many there are to be looked at. */
export function findingsText(findings: readonly Finding[]): string {
  const names = Math.max(...findings.map(one => one.name.length))
  const indent = names + STATE + 4
  const width = Math.max(40, (process.stdout.columns || 100) - indent)
  const lines = findings.map(({ name, state, message, hint, where }) => {
    const word = styleText(COLOURS[state], state.padEnd(STATE), { stream: process.stdout })
    const said = [message, where, hint].flatMap(text => (text ? wrapped(oneLine(text), width) : []))
    return `${word}  ${name.padEnd(names)}  ${said.join(`\n${' '.repeat(indent)}`)}`
  })
  const count = (state: Finding['state']) => findings.filter(one => one.state === state).length
  return `${lines.join('\n')}\n\n${summary(count('fail'), count('warn'))}`
}

const STATE = 'fail'.length

function summary(fails: number, warns: number): string {
  if (fails + warns === 0) return 'All is well.'
  const faults = fails === 0 ? 'Nothing fails' : `${fails} ${fails === 1 ? 'thing fails' : 'things fail'}`
  return `${faults}, ${warns} ${warns === 1 ? 'is' : 'are'} to be looked at.`
}
