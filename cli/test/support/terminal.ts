import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { endWithFile } from '../../../test/support/leftovers.ts'
import { SVC } from './entry.ts'

const quoted = (words: readonly string[]) => words.map(word => `'${word}'`).join(' ')

/** A terminal of util-linux' `script`, and a person at it. */
export async function terminal(place: { readonly home: string; readonly folder: string }, args: readonly string[]) {
  // `exec`, for a shell that stays takes Ctrl-C for itself as well and ends with 130
  const command = `exec ${quoted([process.execPath, ...SVC, ...args])}`
  // Node takes a terminal without colours for granted where CI is set
  const { CI: _ci, ...env } = process.env
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: place.folder,
    env: { ...env, SHELL: '/bin/sh', SVC_HOME: place.home, TERM: 'xterm' },
  })
  endWithFile(child)
  let seen = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (seen += chunk))
  const ended = once(child, 'close')
  return {
    type: (keys: string) => void child.stdin.write(keys),
    async sees(words: string, from = 0): Promise<number> {
      while (!seen.includes(words, from))
        await Promise.race([once(child.stdout, 'data'), ended.then(() => Promise.reject(new Error(`it ended:\n${seen}`)))])
      return seen.indexOf(words, from) + words.length
    },
    seen: () => seen,
    code: async () => (await ended)[0] as number,
  }
}
