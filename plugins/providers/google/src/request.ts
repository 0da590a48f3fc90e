import type {
  ContentPart,
  Json,
  MessagePart,
  ModelMessage,
  ModelRequest,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
} from '@svc/core/contracts'
import { isTree, perTools, textIn, type Tree } from '@svc/provider-http'
import { isOlder, thinkingOf } from './features.ts'

/** Traits of the requested model. */
export interface ModelTraits {
  readonly temperature?: boolean
  /** True if the model can return its thoughts. */
  readonly thinking?: boolean
}

/** The body of `generateContent` and `streamGenerateContent`. */
export function bodyOf(request: ModelRequest, traits: ModelTraits = {}): Tree {
  const { model } = request
  const described = withSchema(request)
  const systemInstruction = systemOf(described.messages)
  const generationConfig = settingsOf(described, traits)
  return {
    contents: contentsOf(request.messages, !isOlder(model)),
    ...(systemInstruction === undefined ? {} : { systemInstruction }),
    ...toolsOf(request),
    ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
  }
}

/** Models before Gemini 3 accept no reply schema together with callable tools: a system message describes the schema. */
function withSchema(request: ModelRequest): ModelRequest {
  const { responseSchema, tools = [], toolChoice, messages, model, ...rest } = request
  if (responseSchema === undefined || tools.length === 0 || toolChoice === 'none' || !isOlder(model)) return request
  const text = `When you call no tool, answer with JSON, and nothing else, of this JSON Schema: ${JSON.stringify(responseSchema)}`
  return { ...rest, model, tools, messages: [{ role: 'system', parts: [{ type: 'text', text }] }, ...messages] }
}

function settingsOf(request: ModelRequest, traits: ModelTraits): Tree {
  const { temperature, maxTokens, responseSchema, responseFormat } = request
  const thinkingConfig = thinkingOf(request) ?? (traits.thinking === true ? { includeThoughts: true } : undefined)
  const format = responseSchema === undefined ? {} : { responseJsonSchema: responseSchema }
  const isJson = responseSchema !== undefined || responseFormat === 'json'
  return {
    ...(temperature === undefined || traits.temperature === false ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...samplingOf(request),
    ...(isJson ? { responseMimeType: 'application/json', ...format } : {}),
    ...(thinkingConfig === undefined ? {} : { thinkingConfig }),
  }
}

/** Fields that select tokens. They are absent from most requests. */
function samplingOf(request: ModelRequest): Tree {
  const { stop, topP, topK, seed, n, frequencyPenalty, presencePenalty, logprobs } = request
  return {
    ...(stop === undefined || stop.length === 0 ? {} : { stopSequences: stop }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(seed === undefined ? {} : { seed }),
    ...(n === undefined || n === 1 ? {} : { candidateCount: n }),
    ...(frequencyPenalty === undefined ? {} : { frequencyPenalty }),
    ...(presencePenalty === undefined ? {} : { presencePenalty }),
    ...(logprobs === undefined ? {} : { responseLogprobs: true, ...(logprobs > 0 ? { logprobs } : {}) }),
  }
}

function toolsOf({ tools = [], toolChoice = 'auto', responseSchema }: ModelRequest): Tree {
  // Many models accept no reply schema together with tools. The request omits tools that cannot be called.
  if (tools.length === 0 || (toolChoice === 'none' && responseSchema !== undefined)) return {}
  return {
    tools: wireTools(tools),
    toolConfig: {
      functionCallingConfig: choiceOf(
        toolChoice,
        tools.some(tool => tool.strict)
      ),
    },
  }
}

const wireTools = perTools(tools => [
  {
    functionDeclarations: tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parametersJsonSchema: parameters,
    })),
  },
])

const MODES = { auto: 'AUTO', none: 'NONE', required: 'ANY' } as const

/** With `ANY` and `VALIDATED`, arguments always fit their schemas. */
function choiceOf(choice: NonNullable<ModelRequest['toolChoice']>, strict: boolean): Tree {
  if (typeof choice === 'object') return { mode: 'ANY', allowedFunctionNames: [choice.tool] }
  return { mode: strict && choice === 'auto' ? 'VALIDATED' : MODES[choice] }
}

/** Ids that are the full name of a resource. Servers of other vendors list ids with slashes, too. */
const FULL_NAME = /^(models|tunedModels|dynamic|endpoints|projects|publishers)\//

/** The path of a model. Each segment is escaped, so that an id from a caller cannot select another path. */
export function modelPath(model: string): string {
  const name = FULL_NAME.test(model) ? model : `models/${model}`
  return name
    .split('/')
    .map(segment => (/^\.*$/.test(segment) ? '_' : encodeURIComponent(segment)))
    .join('/')
}

/** A part of a content of the API. */
type WirePart = { readonly [key: string]: Json | undefined }
interface Content {
  readonly role: 'user' | 'model'
  readonly parts: WirePart[]
}

/** Signature for a call that another provider made. Google documents this value; Gemini 3 accepts it instead of a real signature. */
const NO_SIGNATURE = 'skip_thought_signature_validator'

/** The parts of all system messages; `undefined` if they are empty. */
function systemOf(messages: readonly ModelMessage[]): { readonly parts: readonly WirePart[] } | undefined {
  const parts = messages.filter(message => message.role === 'system').flatMap(message => message.parts.flatMap(simplePart))
  return parts.length === 0 ? undefined : { parts }
}

/** Converts messages to the API. `modern`: Gemini 3 or later, which requires signatures and accepts images in results. */
function contentsOf(messages: readonly ModelMessage[], modern: boolean): Content[] {
  const contents: Content[] = []
  const ids = new Map<string, string>()
  let before: ModelMessage['role'] | undefined
  for (const { role, parts } of messages) {
    if (role === 'system') continue
    const made = role === 'assistant' ? modelParts(parts, modern, ids) : parts.flatMap(part => userPart(part, modern, ids))
    if (made.length === 0) continue
    // All results of a step must be in one content, without text of the user.
    if (before === role) contents.at(-1)!.parts.push(...made)
    else contents.push({ role: role === 'assistant' ? 'model' : 'user', parts: made })
    before = role
  }
  return withResults(contents)
}

function modelParts(parts: readonly MessagePart[], modern: boolean, ids: Map<string, string>): WirePart[] {
  const unsigned = !parts.some(part => part.type === 'tool_call' && signatureOf(part))
  const first = modern && unsigned ? parts.find(part => part.type === 'tool_call') : undefined
  return parts.flatMap(part => {
    if (part.type === 'reasoning') return thoughtPart(part)
    if (part.type === 'tool_call') return [callPart(part, ids, part === first ? NO_SIGNATURE : signatureOf(part))]
    return simplePart(part)
  })
}

const signatureOf = (part: { readonly providerData?: Json }) => textIn(part.providerData, 'thoughtSignature')

function callPart(call: ToolCallPart, ids: Map<string, string>, thoughtSignature: string | undefined): WirePart {
  const id = textIn(call.providerData, 'id')
  if (id !== undefined) ids.set(call.id, id)
  const args = call.invalid === undefined ? call.arguments : { invalid_json: call.invalid }
  return {
    functionCall: { ...(id === undefined ? {} : { id }), name: call.tool, args },
    ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
  }
}

/** Returns only thoughts with a signature. The signature of a text is in an empty text after it. */
function thoughtPart(part: ReasoningPart): WirePart[] {
  const thoughtSignature = signatureOf(part)
  if (thoughtSignature === undefined) return []
  const isThought = isTree(part.providerData) && part.providerData.thought === true
  return [isThought ? { text: part.text, thought: true, thoughtSignature } : { text: '', thoughtSignature }]
}

function userPart(part: MessagePart, modern: boolean, ids: ReadonlyMap<string, string>): WirePart[] {
  return part.type === 'tool_result' ? resultParts(part, modern, ids.get(part.id)) : simplePart(part)
}

function simplePart(part: MessagePart): WirePart[] {
  if (part.type === 'text') return part.text === '' ? [] : [{ text: part.text }]
  if (part.type === 'image_url') return [{ fileData: { mimeType: typeOf(part.url), fileUri: part.url } }]
  return part.type === 'image' || part.type === 'file' || part.type === 'audio' ? [mediaPart(part)] : []
}

const TYPES: Readonly<Record<string, string>> = { png: 'png', webp: 'webp', heic: 'heic', heif: 'heif', gif: 'gif' }

/** The API requires the type of an image at an address. Most addresses without a known ending lead to JPEG. */
function typeOf(url: string): string {
  const ending = /\.(\w+)$/.exec(URL.parse(url)?.pathname ?? '')?.[1]?.toLowerCase() ?? ''
  return `image/${Object.hasOwn(TYPES, ending) ? TYPES[ending] : 'jpeg'}`
}

const mediaPart = ({ mimeType, data }: { readonly mimeType: string; readonly data: string }): WirePart => ({
  inlineData: { mimeType, data },
})

function resultParts({ tool, content, isError }: ToolResultPart, modern: boolean, id: string | undefined): WirePart[] {
  const media = content.filter(part => part.type === 'image' || part.type === 'audio').map(mediaPart)
  const words = content.flatMap(wordsOf).join('\n')
  const response = isError ? { error: words } : { output: words }
  const inside = modern && media.length > 0 ? { parts: media } : {}
  const result = { functionResponse: { ...(id === undefined ? {} : { id }), name: tool, response, ...inside } }
  return modern ? [result] : [result, ...media]
}

function wordsOf(part: ContentPart): string[] {
  if (part.type === 'text') return [part.text]
  if (part.type === 'image' || part.type === 'audio') return []
  return [part.type === 'resource_link' ? `[${part.name}: ${part.uri}]` : jsonOf(part)]
}

/** A resource, or a part of an unknown type from another server, as JSON. */
const jsonOf = (part: { readonly resource?: unknown }) => JSON.stringify(part.resource ?? part)

/** Adds a result to each call of a cancelled turn, because the API requires a result for each call. */
function withResults(contents: Content[]): Content[] {
  for (let at = contents.length - 1; at >= 0; at--) {
    const next = contents[at + 1]
    const got = next?.parts.flatMap(part => keyIn(part.functionResponse)) ?? []
    const calls = contents[at]!.parts.filter(part => isTree(part.functionCall))
    const missing = calls.filter(part => !taken(got, keyIn(part.functionCall)[0]!)).map(part => noResult(part.functionCall))
    if (missing.length === 0) continue
    if (missing.length < calls.length) next!.parts.push(...missing)
    else contents.splice(at + 1, 0, { role: 'user', parts: missing })
  }
  return contents
}

/** The key that pairs a call with its result: the id, else the name. */
const keyIn = (part: Json | undefined): string[] => (isTree(part) ? [textIn(part, 'id') ?? textIn(part, 'name') ?? ''] : [])

function taken(keys: string[], key: string): boolean {
  const at = keys.indexOf(key)
  if (at >= 0) keys.splice(at, 1)
  return at >= 0
}

function noResult(call: Json | undefined): WirePart {
  const id = textIn(call, 'id')
  const response = { error: 'The call was cancelled and has no result.' }
  return { functionResponse: { ...(id === undefined ? {} : { id }), name: textIn(call, 'name') ?? '', response } }
}
