import { MESSAGES } from './anthropic-wire.ts'
import { CHAT, RESPONSES } from './openai-wires.ts'
import type { Dialect } from './rig.ts'

export const V4: Dialect = {
  title: 'version 4 (@ai-sdk/openai 4, chat completions)',
  entry: { package: '@ai-sdk/openai', export: 'createOpenAI.chat' },
  wire: CHAT,
}
export const V4_RESPONSES: Dialect = {
  title: 'version 4 (@ai-sdk/openai 4, responses)',
  entry: { package: '@ai-sdk/openai' },
  wire: RESPONSES,
}
export const V4_ANTHROPIC: Dialect = {
  title: 'version 4 (@ai-sdk/anthropic 4)',
  entry: { package: '@ai-sdk/anthropic' },
  wire: MESSAGES,
}
export const V3: Dialect = {
  title: 'version 3 (@ai-sdk/openai 3, chat completions)',
  entry: { package: 'ai-sdk-openai-v3', export: 'createOpenAI.chat' },
  wire: CHAT,
}
export const V3_RESPONSES: Dialect = {
  title: 'version 3 (@ai-sdk/openai 3, responses)',
  entry: { package: 'ai-sdk-openai-v3' },
  wire: RESPONSES,
}
export const V2: Dialect = {
  title: 'version 2 (@ai-sdk/openai 2, chat completions)',
  entry: { package: 'ai-sdk-openai-v2', export: 'createOpenAI.chat' },
  wire: CHAT,
}
export const V2_RESPONSES: Dialect = {
  title: 'version 2 (@ai-sdk/openai 2, responses)',
  entry: { package: 'ai-sdk-openai-v2' },
  wire: RESPONSES,
}

export const DIALECTS: readonly Dialect[] = [V4, V4_RESPONSES, V4_ANTHROPIC, V3, V3_RESPONSES, V2, V2_RESPONSES]
