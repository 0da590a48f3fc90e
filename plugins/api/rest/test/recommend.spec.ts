import { expect } from 'chai'
import { svcError } from '@svc/core'
import { Recommend, type RecommendRequest } from '@svc/core/contracts'
import { service } from '@svc/testing'
import { serveRest } from './support/rest-server.ts'

const PATH = '/api/v1/capabilities/recommend'
const giving = (recommend: Recommend['recommend']) => ({
  more: [service(Recommend, { recommend })],
})

describe('recommendations', () => {
  it('say everything of a team and a workflow, and echo what was asked', async () => {
    const asked: RecommendRequest[] = []
    await using served = await serveRest(
      giving(async request => {
        asked.push(request)
        const team = {
          name: 'board',
          confidence: 0.8,
          reason: 'because',
          formation: 'parallel',
          suggestedBudget: null,
          roles: { reviewer: 2 },
          source: 'a-plugin',
        } as const
        const workflow = { name: 'review', confidence: 1, reason: 'as well', trigger: null, steps: 4 }
        return [
          { vertical: 'coding', action: 'auto_spawn', team, workflow },
          { vertical: 'other', action: 'none', team: null, workflow: null },
        ]
      })
    )
    const { status, body } = await served.call('GET', `${PATH}?task_type=code_review&complexity=very_high&vertical=coding`)
    expect([status, body]).to.deep.equal([
      200,
      {
        task_type: 'code_review',
        complexity: 'very_high',
        mode: 'build',
        vertical: 'coding',
        count: 2,
        recommendations: [
          {
            vertical: 'coding',
            action: 'auto_spawn',
            primary_team: {
              team_name: 'board',
              confidence: 0.8,
              reason: 'because',
              formation: 'parallel',
              suggested_budget: null,
              role_distribution: { reviewer: 2 },
              source: 'a-plugin',
            },
            primary_workflow: {
              workflow_name: 'review',
              confidence: 1,
              reason: 'as well',
              trigger_condition: null,
              estimated_steps: 4,
            },
          },
          { vertical: 'other', action: 'none', primary_team: null, primary_workflow: null },
        ],
      },
    ])
    expect(asked).to.deep.equal([{ taskType: 'code_review', complexity: 'very_high', mode: 'build', vertical: 'coding' }])
  })

  it('require the task and its complexity, and list the allowed words', async () => {
    const details = { field: 'mode', value: 'x', allowed: ['build'], reason: 'unknown' }
    await using served = await serveRest(giving(() => Promise.reject(svcError('INVALID_VALUE', 'mode "x"', { details }))))
    const missing = await served.call('GET', `${PATH}?mode=build`)
    expect(missing.body).to.deep.include({
      error_code: 'MISSING_FIELD',
      details: { required_fields: ['task_type', 'complexity'], provided_fields: ['mode'] },
    })
    const unknown = await served.call('GET', `${PATH}?task_type=a&complexity=low&mode=x`)
    expect([unknown.status, unknown.body.details]).to.deep.equal([400, details])
    expect((await served.call('GET', `${PATH}?task_type=%20&complexity=low`)).body.details).to.include({ field: 'task_type' })
  })

  it('are no route where nothing recommends', async () => {
    await using served = await serveRest()
    expect(await served.call('GET', `${PATH}?task_type=a&complexity=low`)).to.include({ status: 404 })
  })
})
