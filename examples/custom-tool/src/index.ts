import { definePlugin, schema } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { createRollDice, type DiceConfig } from './roll-dice.ts'

export default definePlugin({
  section: 'tools.dice',
  config: schema<DiceConfig>({
    type: 'object',
    additionalProperties: false,
    properties: { most: { type: 'integer', minimum: 1, maximum: 1000, default: 20, description: 'Maximum number of dice' } },
  }),
  setup(scope) {
    scope.add(Tools, 'roll_dice', createRollDice(scope.config))
  },
})
