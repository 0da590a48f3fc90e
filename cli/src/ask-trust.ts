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
import { here } from './settings.ts'

/** Asks a person at the terminal, once for each folder and content, whether the project's configuration may run where it is code. */
export async function askForTrust(): Promise<void> {
  const { home, cwd, env } = here()
  const folder = nearestConfig(cwd)
  const file = folder === undefined || folder === home ? undefined : configFilesIn(folder)[0]
  // what cannot be taken at all is reported by the command itself
  if (file === undefined || trustsAll(env) || !CODE.test(file) || withImports(file).some(one => foreignReason(one) !== undefined))
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
  // quoted: a folder's name may hold what moves the cursor
  process.stderr.write(
    `${basename(file)} is code${isKnown ? ' that has changed since you allowed it' : ''}: ${JSON.stringify(file)}\n`
  )
  const answer = await passingPerson(process.stderr).question('Run it now and from now on? [y/N] ', interrupt.signal)
  interrupt.signal.throwIfAborted()
  return /^\s*y(es)?\s*$/i.test(answer ?? '')
}
