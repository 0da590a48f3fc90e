import { schema } from '@svc/core'
import { DURATION_PATTERN } from '@svc/workflow-lang'

/** The source of a workflow secret. */
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
  shared_workplace: boolean
  workplace_wait: string
  secrets: Record<string, SecretSource>
}

const duration = (value: string, description: string) => ({
  type: 'string',
  pattern: DURATION_PATTERN,
  patternHint: 'must be a duration such as 30s, 5m, 2h, 7d',
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
      description: 'Folders of workflow files, relative to the working directory. `<svc home>/workflows` is always included',
    },
    code: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
      description:
        'Files and folders of workflows written as code (.ts, .mts, .js, .mjs), relative to the working directory. svc imports code only from these, and tools cannot write there',
    },
    writable_by_tools: {
      type: 'boolean',
      default: false,
      description: 'Allow tools and sandboxed programs to write definitions (YAML, JSON) into the folders of `workflows.roots`',
    },
    sync_wait_ms: count(2_000, 'Milliseconds that a request waits for the end of a run', 0),
    run_timeout_s: count(3_600, 'Maximum working time of a run in seconds, without waits'),
    node_timeout: duration('15m', 'Time limit of nodes without a timeout'),
    max_age: duration('30d', 'Maximum age of a run, including waits'),
    retention: duration('30d', 'How long svc keeps ended runs'),
    max_steps: count(20_000, 'Maximum number of steps in a run'),
    max_output_bytes: count(4 * MEBIBYTE, 'Maximum output of a node, in bytes of JSON'),
    max_run_bytes: count(64 * MEBIBYTE, 'Maximum output of all steps of a run together, in bytes of JSON'),
    at_once: count(200, 'Maximum number of runs that a worker executes at the same time'),
    shared_workplace: {
      type: 'boolean',
      default: false,
      description:
        'Set to true if the working folders of all nodes of a cluster are the same, such as on a network file system. Runs that use them then continue on any node',
    },
    workplace_wait: duration(
      '10m',
      'How long runs that use the files of a node wait for this node when it is gone. Then they fail with WORKPLACE_LOST'
    ),
    secrets: {
      type: 'object',
      additionalProperties: SOURCE,
      default: {},
      description: 'Secrets that workflows can use: `{ GITHUB_TOKEN: { env: GITHUB_TOKEN } }`, or `{ file: <path> }`',
    },
  },
})
