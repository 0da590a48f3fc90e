import { VERTICALS } from '../../../support/verticals.ts'
import { exchange, get, ok } from '../../exchange.ts'

const [none, suggest, auto] = ['none', 'suggest', 'auto_spawn']
/** Over trivial, low, medium, high, extreme. */
const ACTIONS = {
  build: [none, none, suggest, auto, auto],
  plan: [none, none, suggest, suggest, suggest],
  review: [none, none, suggest, suggest, auto],
  delegate: [none, suggest, auto, auto, auto],
  explore: [none, none, none, suggest, suggest],
}
const WORDS = [['trivial'], ['low', 'simple'], ['medium', 'moderate'], ['high', 'complex'], ['extreme', 'very_high']]

export default exchange({
  rule: 'says what to do with a recommendation by mode and complexity, and echoes both as they were sent',
  source: 'decisions.md 1, recommendation: actions by mode over trivial..extreme, aliases of complexities',
  together: 'parts',
  config: { plugins: VERTICALS },
  steps: Object.entries(ACTIONS).flatMap(([mode, actions]) =>
    actions.flatMap((action, at) =>
      WORDS[at]!.map(complexity => ({
        request: get(`/api/v1/capabilities/recommend?task_type=code_review&complexity=${complexity}&mode=${mode}`),
        expect: ok({ complexity, mode, recommendations: [{ vertical: 'coding', action }] }),
      }))
    )
  ),
})
