import { expect } from 'chai'
import { svcError } from '@svc/core'
import { effective, serveRest } from './support/rest-server.ts'

const mode = (description: string) => ({ description, effects: ['read'], prompt: '', toolBudget: 1 }) as const

describe('the state of the session', () => {
  it('shows the effective values', async () => {
    await using served = await serveRest()
    const { status, body } = await served.call('GET', '/api/v1/config/effective')
    expect([status, body]).to.deep.equal([200, effective])
  })

  it('lists profiles with every field, never more', async () => {
    const profiles = [
      { name: 'default' },
      {
        name: 'fast',
        provider: 'p',
        model: 'm',
        description: 'Quick',
        temperature: 0.2,
        maxTokens: 9,
        systemPrompt: 'hidden',
        mode: 'plan',
      },
    ]
    await using served = await serveRest({
      selection: { profiles: async () => ({ profiles, active: 'fast', default: 'default' }) },
    })
    const { body } = await served.call('GET', '/api/v1/profiles')
    expect(body).to.deep.equal({
      profiles: [
        {
          name: 'default',
          provider: null,
          model: null,
          description: null,
          temperature: null,
          max_tokens: null,
          is_default: true,
          active: false,
        },
        {
          name: 'fast',
          provider: 'p',
          model: 'm',
          description: 'Quick',
          temperature: 0.2,
          max_tokens: 9,
          is_default: false,
          active: true,
        },
      ],
      active: 'fast',
    })
  })

  it('lists modes', async () => {
    await using served = await serveRest({ modes: { build: mode('Build things'), plan: mode('Plan them') } })
    const { body } = await served.call('GET', '/api/v1/modes')
    expect(body).to.deep.equal({
      modes: [
        { name: 'build', description: 'Build things' },
        { name: 'plan', description: 'Plan them' },
      ],
      active: 'build',
    })
  })

  it('is switched, and each switch answers with what is in force then', async () => {
    const now = { ...effective, override: { provider: 'p', model: 'm' } }
    const selection = { switchProfile: async () => now, switchModel: async () => now, switchMode: async () => now }
    await using served = await serveRest({ selection })
    expect((await served.call('POST', '/api/v1/profile/switch', { profile: 'fast' })).body).to.deep.equal({
      success: true,
      profile: 'fast',
      effective: now,
    })
    expect((await served.call('POST', '/api/v1/model/switch', { provider: 'p', model: 'm' })).body).to.deep.equal({
      success: true,
      provider: 'p',
      model: 'm',
      effective: now,
    })
    expect((await served.call('POST', '/api/v1/mode/switch', { mode: 'plan' })).body).to.deep.equal({
      success: true,
      mode: 'plan',
      effective: now,
    })
  })

  it('names the fields a switch wants', async () => {
    await using served = await serveRest()
    const required = { profile: ['profile'], model: ['provider', 'model'], mode: ['mode'] }
    for (const [name, required_fields] of Object.entries(required)) {
      const { status, body } = await served.call('POST', `/api/v1/${name}/switch`, {})
      expect([status, body.error_code, body.details]).to.deep.equal([
        400,
        'MISSING_FIELD',
        { required_fields, provided_fields: [] },
      ])
      const blank = await served.call(
        'POST',
        `/api/v1/${name}/switch`,
        Object.fromEntries(required_fields.map(field => [field, ' ']))
      )
      expect([blank.status, blank.body.error_code]).to.deep.equal([400, 'INVALID_VALUE'])
    }
  })

  it('tells what a switch may take when it refuses', async () => {
    const switchMode = async () => {
      throw svcError('INVALID_VALUE', 'unknown mode', {
        details: { field: 'mode', value: 'x', allowed: ['build'], reason: 'unknown' },
      })
    }
    await using served = await serveRest({ selection: { switchMode } })
    const { status, body } = await served.call('POST', '/api/v1/mode/switch', { mode: 'x' })
    expect([status, body.error_code]).to.deep.equal([400, 'INVALID_VALUE'])
    expect(body.details).to.deep.include({ allowed: ['build'] })
  })
})
