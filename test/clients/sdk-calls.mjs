// Calls a server through the SDKs and prints what they return, as JSON: node sdk-calls.mjs <url> <key>
import Anthropic from '@anthropic-ai/sdk'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { GoogleGenAI } from '@google/genai'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { embed, generateText, jsonSchema, streamText, tool } from 'ai'
import * as ai6 from 'ai-6'
import { createOpenAI as createOpenAI6 } from 'ai-6-openai'
import { createOpenAICompatible as createCompatible6 } from 'ai-6-openai-compatible'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'

const [url, key] = process.argv.slice(2)
const baseURL = `${url}/v1`
const MODEL = 'local/local-1'
const HELLO = 'say hello'
const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const WEATHER = '/tool get_weather {"city":"Ulm"}'

/** A text, a stream, a tool round, embeddings, and the error of an unknown model. */
async function openai(SDK) {
  const client = new SDK({ baseURL, apiKey: key, maxRetries: 0 })
  const messages = [{ role: 'user', content: HELLO }]
  const whole = await client.chat.completions.create({ model: MODEL, messages })
  let streamed = ''
  for await (const part of await client.chat.completions.create({ model: MODEL, messages, stream: true }))
    streamed += part.choices[0]?.delta.content ?? ''
  const call = await client.chat.completions.create({
    model: MODEL,
    messages: [{ role: 'user', content: WEATHER }],
    tools: [{ type: 'function', function: { name: 'get_weather', parameters: CITY } }],
  })
  const { data } = await client.embeddings.create({ model: MODEL, input: ['a', 'b'] })
  return {
    text: whole.choices[0].message.content,
    streamed,
    tool: JSON.parse(call.choices[0].message.tool_calls[0].function.arguments),
    vectors: data.map(({ embedding }) => embedding.length),
    error: await client.chat.completions.create({ model: 'local/none', messages }).catch(error => [error.status, error.code]),
    models: (await client.models.list()).data.length,
    response: (await client.responses?.create({ model: MODEL, input: HELLO }).catch(error => error))?.output_text,
  }
}

async function anthropic() {
  const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 })
  const messages = [{ role: 'user', content: HELLO }]
  const whole = await client.messages.create({ model: MODEL, max_tokens: 100, messages })
  const streamed = await client.messages.stream({ model: MODEL, max_tokens: 100, messages }).finalText()
  const call = await client.messages.create({
    model: MODEL,
    max_tokens: 100,
    messages: [{ role: 'user', content: WEATHER }],
    tools: [{ name: 'get_weather', input_schema: CITY }],
  })
  return {
    text: whole.content[0].text,
    streamed,
    tool: call.content.find(({ type }) => type === 'tool_use').input,
    error: await client.messages
      .create({ model: 'local/none', max_tokens: 1, messages })
      .catch(error => [error.status, error.error?.error?.type]),
    tokens: (await client.messages.countTokens({ model: MODEL, messages })).input_tokens,
  }
}

/** As `anthropic`, with a chat session that sends the result of its function, embeddings and the list of models. */
async function google() {
  const httpOptions = { baseUrl: url, retryOptions: { attempts: 1 } }
  const client = new GoogleGenAI({ apiKey: key, httpOptions })
  const whole = await client.models.generateContent({ model: MODEL, contents: HELLO })
  let streamed = ''
  for await (const part of await client.models.generateContentStream({ model: MODEL, contents: HELLO }))
    streamed += part.text ?? ''
  const functionDeclarations = [{ name: 'get_weather', description: 'the weather', parametersJsonSchema: CITY }]
  const chat = client.chats.create({ model: MODEL, config: { tools: [{ functionDeclarations }] } })
  const { functionCalls } = await chat.sendMessage({ message: WEATHER })
  const { id, name, args } = functionCalls[0]
  const answer = await chat.sendMessage({ message: { functionResponse: { id, name, response: { output: 'sunny' } } } })
  const { embeddings } = await client.models.embedContent({ model: MODEL, contents: ['a', 'b'] })
  const models = []
  for await (const model of await client.models.list({ config: { pageSize: 2 } })) models.push(model.name)
  return {
    text: whole.text,
    streamed,
    tool: args,
    response: answer.text,
    vectors: embeddings.map(({ values }) => values.length),
    models: models.length,
    tokens: (await client.models.countTokens({ model: MODEL, contents: HELLO })).totalTokens,
    error: await client.models
      .generateContent({ model: 'local/none', contents: HELLO })
      .catch(error => [error.status, JSON.parse(error.message).error.status]),
  }
}

async function aiSdk({ generateText, streamText, tool, jsonSchema }, model) {
  const { text } = await generateText({ model, prompt: HELLO, maxRetries: 0 })
  let streamed = ''
  for await (const part of streamText({ model, prompt: HELLO, maxRetries: 0 }).textStream) streamed += part
  let asked
  const get_weather = tool({
    description: 'the weather',
    inputSchema: jsonSchema(CITY),
    execute: async input => {
      asked = input
      return 'sunny'
    },
  })
  await generateText({ model, prompt: WEATHER, tools: { get_weather }, maxRetries: 0 })
  return { text, streamed, tool: asked }
}

async function langchain() {
  const configuration = { baseURL }
  const model = new ChatOpenAI({ model: MODEL, apiKey: key, configuration, maxRetries: 0 })
  let streamed = ''
  for await (const part of await model.stream(HELLO)) streamed += part.text
  const call = await model
    .bindTools([{ type: 'function', function: { name: 'get_weather', description: 'the weather', parameters: CITY } }])
    .invoke(WEATHER)
  const vectors = await new OpenAIEmbeddings({ model: MODEL, apiKey: key, configuration }).embedDocuments(['a', 'b'])
  return {
    text: (await model.invoke(HELLO)).content,
    streamed,
    tool: call.tool_calls[0].args,
    vectors: vectors.map(vector => vector.length),
  }
}

const options = { baseURL, apiKey: key, name: 'svc' }
const seven = { generateText, streamText, tool, jsonSchema }
const calls = {
  'openai 7': () => openai(OpenAI),
  'openai 6': () => openai(OpenAI6),
  '@anthropic-ai/sdk': anthropic,
  '@google/genai': google,
  'ai 7, openai-compatible': () => aiSdk(seven, createOpenAICompatible(options)(MODEL)),
  'ai 7, openai chat': () => aiSdk(seven, createOpenAI(options).chat(MODEL)),
  'ai 7, openai responses': () => aiSdk(seven, createOpenAI(options)(MODEL)),
  'ai 7, anthropic': () => aiSdk(seven, createAnthropic({ baseURL, apiKey: key })(MODEL)),
  'ai 6, openai-compatible': () => aiSdk(ai6, createCompatible6(options)(MODEL)),
  'ai 6, openai responses': () => aiSdk(ai6, createOpenAI6(options)(MODEL)),
  '@langchain/openai': langchain,
  'ai 7, embeddings': async () => ({
    vectors: [(await embed({ model: createOpenAICompatible(options).textEmbeddingModel(MODEL), value: 'a' })).embedding.length],
  }),
}
const results = {}
for (const [name, call] of Object.entries(calls))
  results[name] = await call().catch(error => ({ failed: `${error.message} ${error.responseBody ?? ''}`.slice(0, 1000) }))
console.log(JSON.stringify(results))
