import { schema } from '@svc/core'
import { DURATION_PATTERN } from '@svc/workflow-lang'

/** Where a secret of workflows comes from. */
export type SecretSource = { readonly env: string } | { readonly file: string }

export interface WorkflowsConfig {
  roots: string[]
  code: string[]
  writable_by_tools: boolean
  sync_wait_ms: number
  run_timeout_s: number
  node_timeout: string
  max_age: string
  retention: string
  max_steps: number
  max_output_bytes: number
  max_run_bytes: number
  at_once: number
  secrets: Record<string, SecretSource>
}

const duration = (value: string, description: string) => ({
  type: 'string',
  pattern: DURATION_PATTERN,
  patternHint: 'must be a length of time such as 30s, 5m, 2h, 7d',
  default: value,
  description,
})
const count = (value: number, description: string, minimum = 1) => ({ type: 'integer', minimum, default: value, description })
const MEBIBYTE = 1_048_576

const SOURCE = {
  type: 'object',
  additionalProperties: false,
  properties: { env: { type: 'string', minLength: 1 }, file: { type: 'string', minLength: 1 } },
  minProperties: 1,
  maxProperties: 1,
}

export const WORKFLOWS_CONFIG = schema<WorkflowsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    roots: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: ['workflows'],
      description: 'Folders of workflow files; relative ones lie in the working directory. `<svc home>/workflows` is always one',
    },
    code: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
      description:
        'Files and folders of workflows that are code (.ts, .mts, .js, .mjs); relative ones lie in the working directory. Code is imported from these alone, and tools cannot write there',
    },
    writable_by_tools: {
      type: 'boolean',
      default: false,
      description:
        'Whether tools and sandboxed programs may write definitions (YAML, JSON) into the folders of `workflows.roots`',
    },
    sync_wait_ms: count(2_000, 'Milliseconds a request for a run waits for its end', 0),
    run_timeout_s: count(3_600, 'Seconds a run may work, waiting aside'),
    node_timeout: duration('15m', 'How long a node may take that has no timeout of its own'),
    max_age: duration('30d', 'How long a run may take in all, waiting too'),
    retention: duration('30d', 'How long runs that have ended are kept'),
    max_steps: count(20_000, 'Steps that a run may make'),
    max_output_bytes: count(4 * MEBIBYTE, 'Bytes of JSON that a node may answer'),
    max_run_bytes: count(64 * MEBIBYTE, 'Bytes of JSON that all steps of a run may answer together'),
    at_once: count(200, 'Runs that a worker works on at once'),
    secrets: {
      type: 'object',
      additionalProperties: SOURCE,
      default: {},
      description: 'Secrets that workflows may name: `{ GITHUB_TOKEN: { env: GITHUB_TOKEN } }`, or `{ file: <path> }`',
    },
  },
})
