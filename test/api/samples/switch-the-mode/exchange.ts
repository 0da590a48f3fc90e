import { exact, exchange, get, ok, post } from '../../exchange.ts'

const profiles = 'default: default\nprofiles: { default: {}, other: { mode: review } }'

export default exchange({
  rule: 'switches the mode; a profile switch does not undo it',
  source: 'http-api.md "States and transitions", workflow mode; decisions.md 1, mode in force',
  alone: true,
  files: { 'profiles.yaml': profiles },
  steps: [
    { request: post('/api/v1/profile/switch', { profile: 'other' }), expect: ok({ effective: { mode: 'review' } }) },
    {
      request: post('/api/v1/mode/switch', { mode: 'plan' }),
      expect: ok(exact({ success: true, mode: 'plan', effective: { mode: 'plan', profile: 'other' } })),
    },
    { request: get('/api/v1/modes'), expect: ok({ active: 'plan' }) },
    { request: post('/api/v1/profile/switch', { profile: 'default' }), expect: ok({ effective: { mode: 'plan' } }) },
    ...['delegate', 'explore', 'review', 'build'].map(mode => ({
      request: post('/api/v1/mode/switch', { mode }),
      expect: ok({ mode, effective: { mode } }),
    })),
  ],
})
