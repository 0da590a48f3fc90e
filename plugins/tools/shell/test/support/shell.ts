import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemContext } from '@svc/core'
import { type Tool, Tools } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { describeWith } from '../../../../../test/support/needs.ts'

/** A group of tests that need bubblewrap and namespaces. Without them, they are skipped with the reason. */
export const withSandbox = (title: string, cases: () => void) => describeWith('bubblewrap', title, cases)

export const COMMANDS = ['sh', 'cat', 'echo', 'ls', 'node', 'sleep', 'yes', 'no-such-program']
/** Starts the plugin with its sandbox on a root with a file and a link to a folder outside. */
export async function openShell(config: object = {}, home = 'home') {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-shell-')))
  const at = (...parts: string[]) => join(folder, ...parts)
  for (const item of ['root/inner', 'beside', home]) await mkdir(at(item), { recursive: true })
  await writeFile(at('root/a.txt'), 'hello\n')
  await writeFile(at('beside/secret'), 'secret\n')
  await symlink(at('beside'), at('root/leak'))
  const before = process.env.SVC_HOME
  process.env.SVC_HOME = at(home)
  const settings = { tools: { shell: { enabled: true, commands: COMMANDS, roots: [at('root')], ...config } } }
  const host = await testHost([new URL('../..', import.meta.url), '@svc/plugin-sandbox-process'], { config: settings })
  const tool = host.slot(Tools).get('run_command')!
  const close = async () => {
    await host.close()
    if (before === undefined) delete process.env.SVC_HOME
    else process.env.SVC_HOME = before
    await rm(folder, { recursive: true, force: true })
  }
  const call = (args: Parameters<Tool['call']>[0], signal = new AbortController().signal) =>
    tool.call(args, systemContext(signal))
  return {
    at,
    tool,
    call,
    close,
    async run(command: readonly string[], more: object = {}) {
      const { structured } = await call({ command: [...command], ...more })
      return structured as { exit_code: number | null; stdout: string; stderr: string; truncated: boolean; stopped?: string }
    },
    [Symbol.asyncDispose]: close,
  }
}
