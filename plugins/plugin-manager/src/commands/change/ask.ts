import { passingPerson } from '@svc/cli/command'
import { consentMissing } from './errors.ts'

/** Asks a person at the terminal; what is not plainly a yes is a no. Throws CONSENT_MISSING where there is no terminal. */
export async function consent(question: string, verb: string, signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw consentMissing(verb)
  const answer = await passingPerson(process.stderr).question(`${question} [y/N] `, signal)
  signal.throwIfAborted()
  return /^\s*y(es)?\s*$/i.test(answer ?? '')
}
