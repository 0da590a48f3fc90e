import type { ModelRequest } from '@svc/core/contracts'
import { perTools, type Tree } from '@svc/provider-http'
import { contentsOf, systemOf } from './contents.ts'

/** What is known of the model that is asked. */
export interface ModelTraits {
  readonly temperature?: boolean
  /** It thinks, and can tell what. */
  readonly thinking?: boolean
}

const OLDER = /gemini-[12](\.|-|$)|gemma|learnlm/i

/** The request as `generateContent` takes it, streamed or whole. */
export function bodyOf(request: ModelRequest, known: ModelTraits = {}): Tree {
  const { model } = request
  const described = withSchema(request)
  const systemInstruction = systemOf(described.messages)
  const generationConfig = settingsOf(described, known)
  return {
    contents: contentsOf(request.messages, !OLDER.test(model)),
    ...(systemInstruction === undefined ? {} : { systemInstruction }),
    ...toolsOf(request),
    ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
  }
}

/** Models before Gemini 3 take no schema of the reply beside tools that may be called: a system message describes it. */
function withSchema(request: ModelRequest): ModelRequest {
  const { responseSchema, tools = [], toolChoice, messages, model, ...rest } = request
  if (responseSchema === undefined || tools.length === 0 || toolChoice === 'none' || !OLDER.test(model)) return request
  const text = `When you call no tool, answer with JSON, and nothing else, of this JSON Schema: ${JSON.stringify(responseSchema)}`
  return { ...rest, model, tools, messages: [{ role: 'system', parts: [{ type: 'text', text }] }, ...messages] }
}

function settingsOf({ temperature, maxTokens, responseSchema }: ModelRequest, known: ModelTraits): Tree {
  return {
    ...(temperature === undefined || known.temperature === false ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(responseSchema === undefined ? {} : { responseMimeType: 'application/json', responseJsonSchema: responseSchema }),
    ...(known.thinking === true ? { thinkingConfig: { includeThoughts: true } } : {}),
  }
}

function toolsOf({ tools = [], toolChoice = 'auto', responseSchema }: ModelRequest): Tree {
  // Many models take no reply schema beside tools: without callable tools the list is left out.
  if (tools.length === 0 || (toolChoice === 'none' && responseSchema !== undefined)) return {}
  return { tools: wireTools(tools), toolConfig: { functionCallingConfig: choiceOf(toolChoice) } }
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

const choiceOf = (choice: NonNullable<ModelRequest['toolChoice']>): Tree =>
  typeof choice === 'string' ? { mode: MODES[choice] } : { mode: 'ANY', allowedFunctionNames: [choice.tool] }

/** The path of a model. What a caller wrote cannot lead elsewhere: each segment is escaped. */
export function modelPath(model: string): string {
  const name = model.includes('/') ? model : `models/${model}`
  return name
    .split('/')
    .map(one => (/^\.*$/.test(one) ? '_' : encodeURIComponent(one)))
    .join('/')
}
