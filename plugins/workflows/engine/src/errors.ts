import { codeOf, messageOf, svcError } from '@svc/core'
import type { PublicError, RunStatus, WorkflowProblem } from '@svc/core/contracts'

export const workflowUnknown = (name: string, known: readonly string[]) =>
  svcError('WORKFLOW_UNKNOWN', `there is no workflow "${name.slice(0, 200)}"`, {
    details: { field: 'workflow', value: name.slice(0, 200), reason: 'not found' },
    hint: known.length > 0 ? `one of: ${known.slice(0, 30).join(', ')}` : 'write one into a folder of workflows.roots',
  })

export const pathRefused = (path: string) =>
  svcError('INVALID_VALUE', `"${path.slice(0, 200)}" is no workflow file below a configured root`, {
    details: { field: 'workflow', value: path.slice(0, 200), reason: 'no workflow file below a configured root' },
    hint: 'give a name (svc workflows list), or the path of a file below a folder of workflows.roots',
  })

export const workflowInvalid = (name: string, problems: readonly WorkflowProblem[]) =>
  svcError('WORKFLOW_INVALID', `the workflow "${name}" cannot run: ${problems.slice(0, 3).map(lineOf).join('; ')}`, {
    details: { field: 'workflow', value: name, reason: 'invalid', problems },
    hint: `svc workflows validate ${name} tells all of it`,
  })

const lineOf = ({ message, path, line }: WorkflowProblem) =>
  `${path}${path ? ' ' : ''}${message}${line === undefined ? '' : ` (line ${line})`}`

/** What a store refuses for good: what is to be stored, not that it is. */
export const REFUSED: ReadonlySet<string | undefined> = new Set(['STORE_TOO_LARGE', 'STORE_INVALID'])

export const runUnknown = (id: string) =>
  svcError('RUN_UNKNOWN', `there is no run "${id.slice(0, 100)}"`, {
    details: { field: 'workflow_id', value: id.slice(0, 100), reason: 'not found' },
    hint: 'svc workflows runs lists them; runs that ended are kept for workflows.retention',
  })

export const invalid = (field: string, reason: string, more: Readonly<Record<string, unknown>> = {}) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason, ...more } })

/** The same where only these are allowed. */
export const notAllowed = (
  field: string,
  reason: string,
  allowed: readonly string[],
  more: Readonly<Record<string, unknown>> = {}
) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, {
    details: { field, reason, ...more, allowed },
    ...(allowed.length > 0 ? { hint: `one of: ${allowed.slice(0, 30).join(', ')}` } : {}),
  })

export const asksNothing = (id: string, status: RunStatus) => {
  const reason = status === 'running' ? 'asks nothing now: it is running' : `asks nothing any more: it has ended: ${status}`
  return svcError('INVALID_VALUE', `the run ${reason}`, {
    details: { field: 'workflow_id', value: id, reason },
    hint: `svc workflows status ${id} tells how it stands`,
  })
}

export const secretMissing = (workflow: string, names: readonly string[]) =>
  svcError('INVALID_VALUE', `the workflow "${workflow}" needs secrets that are not there: ${names.join(', ')}`, {
    details: { field: 'workflow', value: workflow, reason: `secrets not configured: ${names.join(', ')}` },
    hint: `set workflows.secrets.${names[0]}: { env: <variable> } and the variable`,
  })

export const engineBroke = (what: string) =>
  svcError('ENGINE_BROKE', `the run cannot be worked on: ${what}`, { hint: 'tell the authors of svc' })

export const definitionGone = () =>
  svcError('DEFINITION_GONE', 'the definition that the run began with is not in the store', { hint: 'run the workflow anew' })

export const tooManyVisits = (node: string, limit: number) =>
  svcError('TOO_MANY_VISITS', `the node "${node}" was visited more than ${limit} times`, {
    hint: 'end the circle by a branch, or raise max_visits of the node',
  })

export const tooManySteps = (limit: number) =>
  svcError('TOO_MANY_STEPS', `the run has made ${limit} steps`, { hint: 'raise workflows.max_steps, or do less in one run' })

export const branchMissing = (node: string, branch: string | undefined, known: readonly string[]) =>
  svcError('BRANCH_MISSING', `the node "${node}" answered ${branch === undefined ? 'no branch' : `the branch "${branch}"`}`, {
    details: { branch: branch ?? null, known },
    hint: `add it to its "branches", or give the node a "next"`,
  })

export const nodeTypeMissing = (node: string, type: string) =>
  svcError('NODE_TYPE_UNKNOWN', `the node "${node}" is of the type "${type}", which no plugin has here`, {
    hint: 'add the plugin that has it to "plugins"',
  })

export const nodeBroke = (node: string, what: string) =>
  svcError('NODE_BROKE', `the node "${node}" broke the contract of nodes: ${what}`, { hint: 'tell the author of its plugin' })

export const interrupted = (node: string) =>
  svcError(
    'NODE_INTERRUPTED',
    `the process that ran the node "${node}" ended before it had ended, and nobody knows whether it has done its work`,
    {
      hint: 'look whether it has, and retry the run; a node that may run twice says so with "repeatable: true"',
    }
  )

export const nodeLate = (node: string, ms: number) =>
  svcError('NODE_TIMEOUT', `the node "${node}" did not end within ${ms} ms`, { hint: 'give it a longer "timeout"' })

export const runLate = (ms: number) =>
  svcError('RUN_TIMEOUT', `the run has worked for ${ms} ms, which is its limit`, {
    hint: 'raise "timeout" of the workflow, or workflows.run_timeout_s',
  })

/** What a run fails with that has waited for longer than it may; undefined as long as it has not. */
export const tooOld = ({ createdAt }: { readonly createdAt: number }, maxAgeMs: number) =>
  createdAt + maxAgeMs <= Date.now()
    ? svcError('RUN_EXPIRED', `the run is older than ${maxAgeMs} ms and still waits`, { hint: 'raise workflows.max_age' })
    : undefined

export const resultTooLarge = (node: string, limit: number) =>
  svcError('RESULT_TOO_LARGE', `the node "${node}" answered more than ${limit} bytes`, {
    details: { limit },
    hint: 'answer what is needed, write the rest to a file, or raise workflows.max_output_bytes',
  })

export const runTooLarge = (limit: number) =>
  svcError('RUN_TOO_LARGE', `the steps of the run have answered more than ${limit} bytes`, {
    hint: 'answer less from each step, or raise workflows.max_run_bytes',
  })

export const cancelled = () => svcError('CANCELLED', 'cancelled')

/** Codes that no second try would change. */
export const HOPELESS: ReadonlySet<string> = new Set([
  'INVALID_VALUE',
  'MISSING_FIELD',
  'EXPRESSION_INVALID',
  'EXPRESSION_FAILED',
  'NODE_TYPE_UNKNOWN',
  'TOOL_UNKNOWN',
  'TOOL_DENIED',
  'NOT_APPROVED',
  'HTTP_REFUSED',
  'SERVICE_MISSING',
  'NODE_BROKE',
  'NODE_INTERRUPTED',
  'BUDGET_EXHAUSTED',
  'RESULT_TOO_LARGE',
  'RUN_TOO_LARGE',
  'TOO_MANY_VISITS',
  'TOO_MANY_STEPS',
  'BRANCH_MISSING',
  'CANCELLED',
  'RUN_TIMEOUT',
  'RUN_EXPIRED',
])

/** An error as a run tells it: never a stack or a cause. */
export function toPublicError(error: unknown): PublicError {
  const { details } = Object(error) as { details?: unknown }
  const facts = typeof details === 'object' && details !== null ? (details as Readonly<Record<string, unknown>>) : {}
  return { code: codeOf(error) ?? 'NODE_FAILED', message: messageOf(error), details: facts }
}

export const storeForgets = (kind: string) =>
  svcError('STORE_FORGETS', `the store "${kind}" keeps nothing for another process: it has no runs but those of this command`, {
    hint: 'configure a store that lasts: @svc/plugin-store-sqlite',
  })
