/**
 * Ends the process, quietly and with 0, when nobody reads its standard output any more: `svc … | head -1` has what it wanted. Not with 141, as a program
 * that SIGPIPE ends: nothing has failed, and under `set -o pipefail` the whole line would. Without this oclif waits for a drain that never comes.
 */
export function endWithReader(): void {
  process.stdout.on('error', leave)
  process.stderr.on('error', stay)
}

/** Goes on instead: a server serves, whoever reads what it says. */
export function outliveReader(): void {
  process.stdout.off('error', leave).on('error', stay)
  process.stderr.on('error', stay)
}

function leave(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
}

const stay = () => {}
