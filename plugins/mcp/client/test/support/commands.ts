import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunningHost } from '@svc/core'
import { runCommand } from '@svc/cli/command'
import { type Fixture, testHost } from '@svc/testing'
import { COMMANDS } from '../../src/commands.ts'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

/** The output and the exit code of a command. A failed command has the code of its error, and its message in `err`. */
interface Ended {
  readonly code: number | string
  readonly out: string
  readonly err: string
}

/** Runs the commands of this plugin with a host in a temporary home and a persistent store. */
export interface CommandHost extends AsyncDisposable {
  readonly home: string
  run(command: string, ...args: readonly string[]): Promise<Ended>
}

export async function openCommandHost(clients: readonly object[] = [], give: readonly Fixture[] = []): Promise<CommandHost> {
  const home = await mkdtemp(join(tmpdir(), 'svc-mcp-'))
  const before = process.env.SVC_HOME
  process.env.SVC_HOME = home
  let started: Promise<RunningHost> | undefined
  const host = () =>
    (started ??= testHost([pluginFolder('store-sqlite'), pluginFolder('mcp-client')], {
      give,
      config: { store: { path: join(home, 'svc.db') }, mcp: { clients } },
    }))
  return {
    home,
    async run(command, ...args) {
      const [out, err]: string[][] = [[], []]
      const print = (line: string) => void out!.push(`${line}\n`)
      const note = (line: string) => void err!.push(`${line}\n`)
      const ended = (code: number | string) => ({ code, out: out!.join(''), err: err!.join('') })
      const work = COMMANDS[`mcp:${command}` as keyof typeof COMMANDS]
      try {
        const given = { home, print, note, setting: async () => clients, host }
        return ended((await runCommand(work, args, given)).code)
      } catch (error) {
        const { code = '', message, hint = '' } = error as { code?: string; message: string; hint?: string }
        note(`${message} ${hint}`)
        return ended(code)
      }
    },
    async [Symbol.asyncDispose]() {
      await (await started)?.close()
      if (before === undefined) delete process.env.SVC_HOME
      else process.env.SVC_HOME = before
      await rm(home, { recursive: true, force: true })
    },
  }
}
