import { Chat, type Tool, Tools, type TurnEvent } from '@svc/core/contracts'
import { type FakeUpstream, gather, item, testHost, testUse } from '@svc/core/testing'
import { expect } from 'chai'
import * as anthropic from '../plugins/provider-anthropic/test/support/messages-api.ts'
import * as google from '../plugins/provider-google/test/support/gemini-api.ts'

const packageOf = (name: string) => new URL(`../plugins/${name}/`, import.meta.url)
const HOUSE = ['store-memory', 'conversations', 'selection', 'modes', 'chat'].map(packageOf)
const CITIES = ['Ulm', 'Bern']

/** A wire: how its server asks for a tool twice in each of three rounds, and what of a round must come back to it. */
interface Wire {
  readonly key: string
  open(): Promise<FakeUpstream>
  /** What the last request has of round `round`: the signature of its thoughts, the results of its calls. */
  returned(body: unknown, round: number): unknown
}

type Parts<K extends string> = { readonly [key in K]: readonly { readonly [part: string]: unknown }[] }

const WIRES: { readonly [type: string]: Wire } = {
  anthropic: {
    key: anthropic.KEY,
    open: () =>
      anthropic.openMessagesApi({
        own(reply, { messages }) {
          const { block, ended, started, text, tool } = anthropic
          const round = (messages.length - 1) / 2
          if (round === 3) return reply.end(started() + text(0, 'Fair', ' everywhere.') + ended('end_turn'))
          const thought = block(
            0,
            { type: 'thinking' },
            { type: 'thinking_delta', thinking: 'Hm' },
            { type: 'signature_delta', signature: `s${round}` }
          )
          const calls = CITIES.map((city, at) => tool(at + 1, `toolu_${round}_${at}`, 'weather', '{"city":', `"${city}"}`))
          reply.end(started() + thought + calls.join('') + ended('tool_use'))
        },
      }),
    returned(body, round) {
      const { messages } = body as { messages: Parts<'content'>[] }
      const [said, results] = messages.slice(1 + 2 * round)
      return [said!.content[0]!.signature, ...results!.content.map(one => (one.content as { text: string }[])[0]!.text)]
    },
  },
  google: {
    key: google.KEY,
    open: () =>
      google.openGeminiApi({
        own(reply, { contents }) {
          const { call, ended, says, texts } = google
          const round = (contents.length - 1) / 2
          if (round === 3) return reply.end(texts('Fair', ' everywhere.') + ended('STOP'))
          const calls = CITIES.map((city, at) => call('weather', { city }, at === 0 ? { thoughtSignature: `s${round}` } : {}))
          reply.end(says([calls[0]!]) + says([calls[1]!]) + ended('STOP'))
        },
      }),
    returned(body, round) {
      const { contents } = body as { contents: Parts<'parts'>[] }
      const [said, results] = contents.slice(1 + 2 * round)
      const answers = results!.parts.map(one => (one.functionResponse as { response: { output: string } }).response.output)
      return [said!.parts[0]!.thoughtSignature, ...answers]
    },
  },
}

/** Answers the first city last: results must come in the order of the calls. */
function weather(): Tool {
  let ulm = Promise.withResolvers<void>()
  return {
    description: 'the weather of a city',
    category: 'web',
    effects: ['read'],
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    async call({ city }) {
      if (city === 'Ulm') await ulm.promise
      else {
        ulm.resolve()
        ulm = Promise.withResolvers()
      }
      return { content: [{ type: 'text', text: `sunny in ${typeof city === 'string' ? city : 'nowhere'}` }] }
    },
  }
}

for (const [type, wire] of Object.entries(WIRES))
  describe(`three rounds of parallel tools over ${type}`, () => {
    it('reach the model in order, with all that it must be given back, and end in one reply', async () => {
      await using upstream = await wire.open()
      process.env.SVC_TEST_ROUNDS_KEY = wire.key
      const entry = { type, base_url: upstream.url, api_key_env: 'SVC_TEST_ROUNDS_KEY', models: ['own'] }
      await using host = await testHost([...HOUSE, packageOf(`provider-${type}`)], {
        give: [item(Tools, 'weather', weather())],
        config: { providers: { mine: entry } },
      })
      const events: TurnEvent[] = await gather(host.service(Chat).stream({ message: 'How is it?' }, testUse()))
      const texts = events.map(event => (event.type === 'token' ? event.content : '')).join('')
      expect(texts).to.equal('Fair everywhere.')
      expect(events.filter(event => event.type === 'tool_result')).to.have.lengthOf(6)
      expect(events.at(-1)).to.include({ type: 'end', status: 'completed', provider: 'mine', model: 'own' })
      expect(upstream.received).to.have.lengthOf(4)
      const { body } = upstream.received.at(-1)!
      for (const round of [0, 1, 2])
        expect(wire.returned(body, round)).to.deep.equal([`s${round}`, 'sunny in Ulm', 'sunny in Bern'])
      expect(upstream.open()).to.equal(0)
    })
  })
