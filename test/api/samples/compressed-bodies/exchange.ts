import { eachBodyRoute, exchange, post, refused } from '../../exchange.ts'

export default exchange({
  rule: 'refuses a compressed body',
  source: 'decisions.md 1: UNSUPPORTED_MEDIA_TYPE 415',
  steps: eachBodyRoute((path, { good }) =>
    ['gzip', 'br', 'deflate', 'x-unknown'].map(coding => ({
      request: { ...post(path, good), headers: { 'content-encoding': coding, 'content-type': 'application/json' } },
      expect: refused(415, 'UNSUPPORTED_MEDIA_TYPE'),
    }))
  ),
})
