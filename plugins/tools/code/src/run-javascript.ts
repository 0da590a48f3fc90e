import { codeOf, type SvcError } from '@svc/core'
import type { ConsoleLine, Effect, Json, ScriptLimits, ScriptSandbox, Tool } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { timedOut } from './errors.ts'

interface Arguments {
  readonly code: string
  readonly input?: Json
}

const MOST_CODE = 200_000
/** Additional milliseconds, so that the sandbox reports its own time-out first. */
const GRACE_MS = 2_000

/** Creates `run_javascript`, which returns the value of the last expression as JSON. */
export function createRunJavascript(sandbox: ScriptSandbox, limits: ScriptLimits): Tool {
  return toolOf<Arguments>({
    description: descriptionOf(limits),
    category: 'code',
    effects: effectsOf(limits),
    parameters: objectOf(
      {
        code: {
          type: 'string',
          minLength: 1,
          maxLength: MOST_CODE,
          description: 'the script; its last expression is the result; `await` is allowed, `import` is not',
        },
        input: { description: 'JSON that the script receives as `input`' },
      },
      ['input']
    ),
    result: objectOf({ value: { description: 'the value of the last expression; undefined becomes null' } }),
    timeoutMs: Math.ceil(limits.timeoutMs ?? 0) + GRACE_MS,
    async call({ code, input }, ctx) {
      const script = { code, limits, ...(input === undefined ? {} : { input }) }
      const { value, console: lines } = await sandbox.run(script, ctx).catch((error: unknown) => {
        throw codeOf(error) === 'SANDBOX_TIMEOUT' ? timedOut(error as SvcError) : error
      })
      const answer = answerOf(JSON.stringify(value), { value })
      return lines.length === 0 ? answer : { ...answer, content: [...answer.content, consoleOf(lines)] }
    },
  })
}

const effectsOf = ({ network = [], paths = [] }: ScriptLimits): Effect[] => [
  'execute',
  ...(network.length > 0 ? (['network'] as const) : []),
  ...(paths.length > 0 ? (['read', 'write'] as const) : []),
]

function descriptionOf({ network = [], paths = [] }: ScriptLimits): string {
  const has = [
    ...(network.length > 0 ? ['fetch(url, {method, headers, body})'] : []),
    ...(paths.length > 0 ? ['await files.read(path), files.write(path, text), files.list(path)'] : []),
  ]
  const rest = has.length > 0 ? `It also has ${has.join(' and ')}.` : 'It has no network and no files.'
  return `Runs JavaScript in a sandbox and returns the value of its last expression as JSON. The script has the language, \`input\` and console, but not Node, timers or import. ${rest}`
}

const consoleOf = (lines: readonly ConsoleLine[]) =>
  ({
    type: 'text',
    text: ['[console]', ...lines.map(({ level, text }) => (level === 'log' ? text : `${level}: ${text}`))].join('\n'),
  }) as const
