import { codeOf, messageOf, type SvcError, svcError } from '@svc/core'

const WORDS: Readonly<Record<string, { readonly says: string; readonly hint: string }>> = {
  ENOENT: { says: 'there is no such program, or no such working directory', hint: 'Install the program, or use its full path' },
  EACCES: { says: 'it is not executable', hint: 'Make the program executable for the user that runs svc' },
  E2BIG: {
    says: 'its arguments and variables are too long',
    hint: 'Shorten the arguments, or pass the data on the standard input',
  },
  EAGAIN: {
    says: 'this machine does not allow more processes',
    hint: 'Run fewer processes at the same time, or raise the process limit (ulimit -u)',
  },
}

/** A program that could not be started. The message does not show its folder and arguments. */
export function notStarted(file: string, error: unknown): SvcError {
  const name = file.split('/').at(-1)
  const code = codeOf(error) ?? ''
  const { says, hint } = WORDS[code] ?? {
    says: code || messageOf(error),
    hint: 'Run the program in a shell as the user that runs svc, and read its error',
  }
  return svcError('CHILD_NOT_STARTED', `${name} could not be started: ${says}`, {
    details: { code, reason: says },
    hint,
    cause: error,
  })
}

/** A process that SIGKILL does not end: it hangs in the kernel. */
export const stuck = (pid: number): SvcError =>
  svcError('CHILD_STUCK', `process ${pid} was killed and does not exit`, {
    details: { pid },
    hint: 'Check the disk or network file system that it waits for: only the kernel can end it',
  })
