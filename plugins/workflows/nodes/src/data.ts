import type { ScriptSandbox, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { missingService } from './errors.ts'

/** The node type `transform`, which returns a value. */
export const transform: WorkflowNode = {
  description: 'Returns a value that can contain expressions.',
  settings: objectOf({ value: { description: 'Value to return' } }),
  repeatable: true,
  async *run({ settings }) {
    yield { type: 'output', output: settings.value ?? null }
  },
}

/** The node type `continue_as_new`. The engine ends the run with its output, and starts the next one. */
export const continueAsNew: WorkflowNode = {
  description: 'Ends the run, and starts the next run of the workflow with a new input: for workflows without an end.',
  settings: objectOf(
    {
      input: { type: 'object', description: 'Input of the next run' },
      parameters: { type: 'object', description: 'Parameters of the next run; default: those of this run' },
      definition: {
        enum: ['current', 'same'],
        default: 'current',
        description: 'The current version of the workflow, or that of this run',
      },
    },
    ['parameters', 'definition']
  ),
  repeatable: true,
  async *run({ settings: { input = {}, parameters = null, definition = 'current' } }) {
    yield { type: 'output', output: { input, parameters, definition } }
  },
}

/** The node type `condition`: evaluates an expression and takes the branch `true` or `false`. */
export const condition: WorkflowNode = {
  description: 'Takes the branch `true` or `false`, as an expression decides.',
  settings: objectOf({ if: { type: 'string', minLength: 1, expression: 'bool', description: 'Expression that decides' } }),
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
        'JavaScript; its last expression is the output. Pass values as `input`, because text that `${{ }}` inserts into the code runs as code',
    },
    input: { description: 'JSON that the code receives as `input`' },
  },
  ['input']
)

/** Creates the node type `compute`, which runs JavaScript in the sandbox. */
export const createCompute = (sandbox: ScriptSandbox | undefined): WorkflowNode => ({
  description: 'Runs JavaScript in the sandbox, without network and files. Returns the value of the last expression.',
  settings: SETTINGS,
  // the sandbox has nothing that the code can change
  repeatable: true,
  async *run({ settings }, ctx) {
    if (!sandbox) throw missingService('compute', 'a JavaScript sandbox', '@svc/plugin-sandbox-quickjs')
    const { code, input = null } = settings
    const { value, console: lines } = await sandbox.run({ code: code as string, input }, ctx)
    for (const { text } of lines.slice(0, MOST_LINES)) yield { type: 'progress', message: text }
    yield { type: 'output', output: value }
  },
})
