import { VERTICALS } from '../../../support/verticals.ts'
import { exchange, get, ok } from '../../exchange.ts'

const asked = (task: string, complexity: string) =>
  get(`/api/v1/capabilities/recommend?task_type=${task}&complexity=${complexity}&vertical=coding`)
const action = (word: string) => ok({ recommendations: [{ action: word }] })

export default exchange({
  rule: 'asks for a yes before a team whose tools write or execute, where recommend.approval is true',
  source: 'decisions.md 1, recommendation: require_approval replaces auto_spawn',
  together: 'sizes',
  config: { plugins: VERTICALS, recommend: { approval: true } },
  steps: [
    { request: asked('fix_bug', 'high'), expect: action('require_approval') },
    { request: asked('fix_bug', 'medium'), expect: action('suggest') },
    { request: asked('code_review', 'high'), expect: action('auto_spawn') },
  ],
})
