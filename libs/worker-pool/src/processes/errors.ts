import { codeOf, messageOf, type SvcError, svcError } from '@svc/core'

const WORDS: Readonly<Record<string, { readonly says: string; readonly hint: string }>> = {
  ENOENT: { says: 'there is no such program, or no such working directory', hint: 'install it, or write its whole path' },
  EACCES: { says: 'it may not be run', hint: 'make it executable for who runs svc' },
  E2BIG: { says: 'its arguments and variables are too long', hint: 'hand over less, or through its standard input' },
  EAGAIN: { says: 'this machine allows no further process', hint: 'run fewer at once, or raise the limit of processes' },
}

/** A program that could not be started; its folder and arguments are not told. */
export function notStarted(file: string, error: unknown): SvcError {
  const name = file.split('/').at(-1)
  const code = codeOf(error) ?? ''
  const { says, hint } = WORDS[code] ?? { says: code || messageOf(error), hint: 'try it by hand as the user who runs svc' }
  return svcError('CHILD_NOT_STARTED', `${name} could not be started: ${says}`, {
    details: { code, reason: says },
    hint,
    cause: error,
  })
}

/** A process that not even SIGKILL ends: it hangs in the kernel. */
export const stuck = (pid: number): SvcError =>
  svcError('CHILD_STUCK', `process ${pid} was killed and does not end`, {
    details: { pid },
    hint: 'look at what it waits for (a dead disk or network file system); only the kernel can let it go',
  })
