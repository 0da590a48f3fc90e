import { basename } from 'node:path'
import {
  CODE,
  type ConfigCode,
  configCode,
  configFilesIn,
  foreignReason,
  trustedHash,
  nearestConfig,
  trustCode,
  trustsAll,
  withImports,
} from '@svc/core/config'
import { ensureHome } from '@svc/runtime'
import { here } from './command-place.ts'

/** Asks the user at the terminal, once for each folder and content, whether a configuration file that contains code can run. */
export async function askForTrust(): Promise<void> {
  const { home, cwd, env } = here()
  const folder = nearestConfig(cwd)
  const file = folder === undefined || folder === home ? undefined : configFilesIn(folder)[0]
  // the command itself reports a file that svc refuses
  if (
    file === undefined ||
    trustsAll(env) ||
    !CODE.test(file) ||
    withImports(file).some(withImport => foreignReason(withImport) !== undefined)
  )
    return
  const code = configCode(file)
  const before = trustedHash(home, code.file)
  if (before === code.hash) return
  if (await isAllowed(code, before !== undefined)) trustCode(ensureHome(home), code)
}

async function isAllowed({ file }: ConfigCode, isKnown: boolean): Promise<boolean> {
  const { passingPerson } = await import('./command/person.ts')
  const { abortOnInterrupt } = await import('./interrupt.ts')
  using interrupt = abortOnInterrupt()
  // quoted: the name of a folder can contain control characters
  process.stderr.write(
    `${basename(file)} is code${isKnown ? ' that has changed since you allowed it' : ''}: ${JSON.stringify(file)}\n`
  )
  const answer = await passingPerson(process.stderr).question('Run it now and from now on? [y/N] ', interrupt.signal)
  interrupt.signal.throwIfAborted()
  return /^\s*y(es)?\s*$/i.test(answer ?? '')
}
