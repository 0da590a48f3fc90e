import { definePlugin, systemContext } from '@svc/core'
import { ProcessSandbox, Tools, Workplace } from '@svc/core/contracts'
import { checkSettings, shellConfig } from './settings.ts'

export default definePlugin({
  section: 'tools.shell',
  config: shellConfig,
  async check({ enabled, roots }) {
    if (!enabled) return []
    return (await import('@svc/safe-fs')).rootProblems(roots, 'tools.shell.roots')
  },
  optional: { sandbox: ProcessSandbox, workplace: Workplace },
  async setup(scope, { sandbox, workplace }) {
    const { config } = scope
    if (!config.enabled) return
    checkSettings(config, sandbox)
    // load lazily, because the tool is disabled by default and must not slow down the startup
    const [{ createRunCommand }, { openRoots }] = await Promise.all([import('./run-command.ts'), import('@svc/safe-fs')])
    const folders = config.roots ?? (await workplace?.roots(systemContext(scope.signal))) ?? ['.']
    scope.add(Tools, 'run_command', createRunCommand({ sandbox, config, roots: await openRoots(folders, 'tools.shell.roots') }))
  },
})

export type { ShellConfig } from './settings.ts'
