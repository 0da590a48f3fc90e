import { definePlugin } from '@svc/core'
import { ScriptSandbox, Tools } from '@svc/core/contracts'
import { createRunJavascript } from './run-javascript.ts'
import { codeConfig, limitsOf, problemsOf } from './settings.ts'

export default definePlugin({
  section: 'tools.code',
  config: codeConfig,
  check: problemsOf,
  requires: { sandbox: ScriptSandbox },
  setup(scope, { sandbox }) {
    scope.add(Tools, 'run_javascript', createRunJavascript(sandbox, limitsOf(scope.config)))
  },
})

export type { CodeConfig } from './settings.ts'
