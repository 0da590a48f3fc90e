import { codeOf, type SvcError, svcError } from '@svc/core'

export const engineMissing = (reason: string, packages: string): SvcError =>
  svcError('ENGINE_MISSING', reason, {
    hint: `Install it (Debian: apt-get install ${packages}), or skip the test where missingEngine() returns a reason`,
  })

/** `log` is the end of what the server wrote. */
export const engineFailed = (name: string, what: string, log: string): SvcError =>
  svcError('ENGINE_FAILED', `${name} ${what}. The end of its log:\n${log.trimEnd() || '(empty)'}`, {
    hint: 'Read the log above; it names the setting or the file',
  })

export const engineStopped = (name: string): SvcError =>
  svcError('ENGINE_STOPPED', `${name} does not run`, { hint: 'Call start() first' })

/** For `import(name).catch(…)`: throws ENGINE_CLIENT_MISSING where the package is not installed. */
export const clientFailed =
  (name: string) =>
  (cause: unknown): never => {
    if (codeOf(cause) !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw svcError('ENGINE_CLIENT_MISSING', `the package ${name} is not installed`, {
      hint: `Run npm install --save-dev ${name}`,
      cause,
    })
  }
