import { exact, exchange, get, ok, post, PROFILES } from '../../exchange.ts'

export default exchange({
  rule: 'switches the mode; a profile switch does not undo it',
  source: 'http-api.md "States and transitions", workflow mode; decisions.md 1, mode in force',
  // where no mode has been switched before
  together: 'names',
  files: PROFILES,
  steps: [
    { request: post('/api/v1/profile/switch', { profile: 'careful' }), expect: ok({ effective: { mode: 'review' } }) },
    {
      request: post('/api/v1/mode/switch', { mode: 'plan' }),
      expect: ok(exact({ success: true, mode: 'plan', effective: { mode: 'plan', profile: 'careful' } })),
    },
    { request: get('/api/v1/modes'), expect: ok({ active: 'plan' }) },
    { request: post('/api/v1/profile/switch', { profile: 'default' }), expect: ok({ effective: { mode: 'plan' } }) },
    ...['delegate', 'explore', 'review', 'build'].map(mode => ({
      request: post('/api/v1/mode/switch', { mode }),
      expect: ok({ mode, effective: { mode } }),
    })),
  ],
})
