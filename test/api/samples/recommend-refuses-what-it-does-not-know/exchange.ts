import { exchange, get, invalid, missing } from '../../exchange.ts'

const asked = (query: string) => get(`/api/v1/capabilities/recommend?${query}`)

export default exchange({
  rule: 'refuses a recommendation without task or complexity, and a complexity or mode that there is not, with those that there are',
  source: 'http-api.md "Capability recommendations"; decisions.md 1, recommendation: unknown complexity or mode 400 with allowed',
  steps: [
    { request: asked('mode=build'), expect: missing(['task_type', 'complexity'], ['mode']) },
    {
      request: asked('task_type=a&complexity=huge'),
      expect: invalid('complexity', {
        value: 'huge',
        allowed: ['trivial', 'low', 'medium', 'high', 'extreme', 'simple', 'moderate', 'complex', 'very_high'],
      }),
    },
    {
      request: asked('task_type=a&complexity=low&mode=sing'),
      expect: invalid('mode', { value: 'sing', allowed: ['build', 'plan', 'review', 'delegate', 'explore'] }),
    },
    { request: asked('task_type=%20&complexity=low'), expect: invalid('task_type') },
    { request: asked(`task_type=${'a'.repeat(201)}&complexity=low`), expect: invalid('task_type') },
    { request: asked('task_type=a&task_type=b&complexity=low'), expect: invalid('task_type') },
  ],
})
