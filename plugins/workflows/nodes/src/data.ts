import type { ScriptSandbox, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { missingService } from './errors.ts'

/** Answers a value made of others. */
export const transform: WorkflowNode = {
  description: 'Answers a value, with expressions in it.',
  settings: objectOf({ value: { description: 'What it answers' } }),
  repeatable: true,
  async *run({ settings }) {
    yield { type: 'output', output: settings.value ?? null }
  },
}

/** Asks an expression, and goes the branch `true` or `false`. */
export const condition: WorkflowNode = {
  description: 'Goes one way or the other, as an expression says.',
  settings: objectOf({ if: { type: 'string', minLength: 1, expression: 'bool', description: 'The expression that decides' } }),
  output: { type: 'boolean' },
  branches: ['true', 'false'],
  repeatable: true,
  async *run({ settings }) {
    const output = settings.if === true
    yield { type: 'output', output, branch: String(output) }
  },
}

const MOST_CODE = 200_000
const MOST_LINES = 20

const SETTINGS = objectOf(
  {
    code: {
      type: 'string',
      minLength: 1,
      maxLength: MOST_CODE,
      description:
        'JavaScript; its last expression is the answer. Give values as `input`: what is put into the code by `${{ }}` runs as code',
    },
    input: { description: 'JSON that the code sees as `input`' },
  },
  ['input']
)

/** Makes the node that runs JavaScript in the sandbox. */
export const createCompute = (sandbox: ScriptSandbox | undefined): WorkflowNode => ({
  description: 'Runs JavaScript in the sandbox, without network and files. It answers the value of the last expression.',
  settings: SETTINGS,
  // it reaches nothing that it could change
  repeatable: true,
  async *run({ settings }, ctx) {
    if (!sandbox) throw missingService('compute', 'a sandbox for JavaScript', '@svc/plugin-sandbox-quickjs')
    const { code, input = null } = settings
    const { value, console: lines } = await sandbox.run({ code: code as string, input }, ctx)
    for (const { text } of lines.slice(0, MOST_LINES)) yield { type: 'progress', message: text }
    yield { type: 'output', output: value }
  },
})
