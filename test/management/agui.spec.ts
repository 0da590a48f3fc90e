import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createClient, type OpenStream } from '../support/client.ts'
import { inNewHome } from '../support/service.ts'
import { startTwo } from '../support/two-workers.ts'

const WORDS = Array.from({ length: 40 }, (_, at) => `word${at}`).join(' ')
const PROFILES = { profiles: { default: {}, calm: { system_prompt: 'Be calm' } } }

const open = (url: string, run: number, profile = 'calm') =>
  createClient(url, { keepAlive: false }).stream({
    method: 'POST',
    path: `/api/v1/agui/${profile}`,
    body: {
      threadId: 't',
      runId: `r${run}`,
      messages: [{ id: 'm', role: 'user', content: `/pace 60\n${WORDS}` }],
    },
  })

interface Read {
  readonly types: readonly string[]
  readonly text: string
}

async function readRun(stream: OpenStream): Promise<Read> {
  const { events } = await stream.rest()
  const data = events.filter(({ comment }) => !comment).map(event => event.data as { type: string; delta?: string })
  return {
    types: data.map(({ type }) => type),
    text: data.map(({ type, delta = '' }) => (type === 'TEXT_MESSAGE_CONTENT' ? delta : '')).join(''),
  }
}

describe('agents of AG-UI', () => {
  it('end their runs while both workers are replaced, and the new ones run the same profiles', () =>
    inNewHome(async home => {
      await writeFile(join(home, 'profiles.yaml'), JSON.stringify(PROFILES))
      await using service = await startTwo({ home })
      const streams = await Promise.all(Array.from({ length: 6 }, (_, run) => open(service.url, run)))
      for (const stream of streams) expect((await stream.next())?.data).to.include({ type: 'RUN_STARTED' })
      process.kill(service.child.pid!, 'SIGHUP')
      await service.seen(/"event":"reloaded"/)
      streams.push(await open(service.url, 6))
      const runs = await Promise.all(streams.map(readRun))
      for (const { types, text } of runs) {
        expect(types.at(0)).to.equal('RUN_STARTED')
        expect(types.slice(-2)).to.deep.equal(['TEXT_MESSAGE_END', 'RUN_FINISHED'])
        expect(text).to.contain(WORDS)
      }
    }))
})
