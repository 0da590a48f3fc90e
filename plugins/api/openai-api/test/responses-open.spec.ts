import { expect } from 'chai'
import type { Tree } from './support/api.ts'
import { REQUIRED, responseProblems, streamProblems } from './support/open-responses.ts'
import { fn, says, startResponses, textOf } from './support/responses.ts'

/** The HTTP tests of the conformance suite of Open Responses, written anew from the specification. */
describe('Open Responses', () => {
  let api: Awaited<ReturnType<typeof startResponses>>
  before(async () => {
    api = await startResponses()
  })
  after(() => api[Symbol.asyncDispose]())
  const PNG =
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

  /** Asks for a response as a whole and as a stream, and checks both. */
  const both = async (body: Tree, status = 'completed') => {
    const whole = await api.respond(body)
    expect(whole.status, whole.text).to.equal(200)
    expect(responseProblems(whole.body)).to.deep.equal([])
    const stream = await api.stream(body)
    expect(streamProblems(stream.events)).to.deep.equal([])
    for (const response of [whole.body, stream.response]) {
      expect(response.status).to.equal(status)
      expect(response.output).to.not.have.length(0)
    }
    expect(stream.isDone).to.equal(true)
    return whole.body
  }

  it('requires 31 keys of a response', () => {
    expect(REQUIRED).to.equal(31)
    expect(responseProblems({})).to.have.length(31)
    expect(streamProblems([{ type: 'response.output_text.delta', sequence_number: 0 }])).to.not.have.length(0)
  })

  it('basic text', () => both({ input: [says('user', 'Say hello in exactly 3 words.')] }))
  it('a text as input', () => both({ input: 'Count from 1 to 5.' }))
  it('instructions of the system', () => both({ input: [says('system', 'You are a pirate.'), says('user', 'Say hello.')] }))
  it('an image', () =>
    both({
      input: [
        says('user', [
          { type: 'input_text', text: 'What is it?' },
          { type: 'input_image', image_url: PNG },
        ]),
      ],
    }))
  it('a file', () =>
    both({
      input: [says('user', [{ type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' }])],
    }))
  it('reasoning', async () => {
    const { output } = await both({ input: 'Think.', reasoning: { effort: 'low' } })
    expect(output[0].type).to.equal('reasoning')
  })
  it('an incomplete response', () => both({ input: 'one two three', max_output_tokens: 2 }, 'incomplete'))

  it('several turns', async () => {
    const turns = [says('user', 'My name is Alice.'), says('assistant', 'Hello Alice!'), says('user', 'What is my name?')]
    expect(textOf(await both({ input: turns }))).to.include('(turn 2)')
  })

  it('a tool call, its round trip, and a response that continues another', async () => {
    const tools = [fn('get_weather')]
    const input = [says('user', '/tool get_weather {"a":"San Francisco, CA"}')]
    const made = await both({ input, tools, store: true })
    const call = made.output.find(({ type }: Tree) => type === 'function_call')
    expect(JSON.parse(call.arguments)).to.deep.equal({ a: 'San Francisco, CA' })
    const result = { type: 'function_call_output', call_id: call.call_id, output: '{"temperature":"18"}' }
    const stateless = await both({ input: [...input, ...made.output, result], tools })
    const continued = await both({ input: [result], tools, previous_response_id: made.id })
    expect(textOf(continued)).to.equal(textOf(stateless)).and.include('18')
  })

  it('a response in the background, and one that fails', async () => {
    const queued = await api.respond({ input: 'x', background: true })
    expect(responseProblems(queued.body)).to.deep.equal([])
    const stream = await api.stream({ input: 'x', background: true })
    expect(streamProblems(stream.events)).to.deep.equal([])
    const failed = await api.stream({ input: 'one two\n/fail network after 2' })
    expect(streamProblems(failed.events)).to.deep.equal([])
    expect(failed.response.error).to.have.keys('code', 'message')
  })

  it('errors', async () => {
    const { status, body } = await api.respond({ input: 'x', previous_response_id: 'resp_missing' })
    expect([status, body.error.code, body.error.param]).to.deep.equal([
      404,
      'previous_response_not_found',
      'previous_response_id',
    ])
    expect(body.error).to.have.keys('message', 'type', 'code', 'param')
  })
})
