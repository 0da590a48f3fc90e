import { definePlugin, schema } from '@svc/core'
import { Modes, Recommend, Teams, Tools, Verticals, Workflows } from '@svc/core/contracts'
import { createRecommend } from './recommend.ts'

export default definePlugin({
  section: 'recommend',
  config: schema<{ approval: boolean }>({
    type: 'object',
    properties: {
      approval: {
        type: 'boolean',
        default: false,
        description: 'Recommend teams whose tools write or execute with require_approval instead of auto_spawn.',
      },
    },
    additionalProperties: false,
  }),
  requires: { verticals: Verticals, tools: Tools, modes: Modes },
  optional: { teams: Teams, workflows: Workflows },
  provides: Recommend,
  setup: ({ config: { approval } }, given) => createRecommend({ ...given, approval }),
})
