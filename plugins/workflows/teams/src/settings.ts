import { schema } from '@svc/core'
import { DURATION_PATTERN } from '@svc/workflow-lang'

export interface TeamsConfig {
  roots: string[]
  writable_by_tools: boolean
  delegate_wait: string
}

export const TEAMS_CONFIG = schema<TeamsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    roots: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: ['teams'],
      description: 'Folders of team files; relative ones lie in the working directory. `<svc home>/teams` is always one',
    },
    writable_by_tools: {
      type: 'boolean',
      default: false,
      description: 'Whether tools and sandboxed programs may write into the folders of `teams.roots`',
    },
    delegate_wait: {
      type: 'string',
      pattern: DURATION_PATTERN,
      patternHint: 'must be a length of time such as 30s, 5m',
      default: '90s',
      description: 'How long the tool `delegate` waits for a team; what takes longer goes on, and the model is told its run',
    },
  },
})
