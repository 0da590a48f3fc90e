import { schema } from '@svc/core'
import { DURATION_PATTERN } from '@svc/workflow-lang'

export interface TeamsConfig {
  roots: string[]
  writable_by_tools: boolean
  delegate_wait: string
  runs: { keep: number; keep_for: string }
}

export const TEAMS_CONFIG = schema<TeamsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    roots: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: ['teams'],
      description: 'Folders of team files, relative to the working directory. `<svc home>/teams` is always included',
    },
    writable_by_tools: {
      type: 'boolean',
      default: false,
      description: 'Allow tools and sandboxed programs to write into the folders of `teams.roots`',
    },
    runs: {
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        keep: {
          type: 'integer',
          minimum: 0,
          maximum: 10_000,
          default: 500,
          description: 'Number of runs of teams that svc lists for each principal, the newest ones',
        },
        keep_for: {
          type: 'string',
          pattern: DURATION_PATTERN,
          patternHint: 'must be a duration such as 12h, 30d',
          default: '30d',
          description:
            'How long svc lists a run of a team. Its messages are kept as long as the workflow run (`workflows.retention`)',
        },
      },
    },
    delegate_wait: {
      type: 'string',
      pattern: DURATION_PATTERN,
      patternHint: 'must be a duration such as 30s, 5m',
      default: '90s',
      description: 'How long the tool `delegate` waits for a team. Longer runs continue, and the model gets the id of the run',
    },
  },
})
