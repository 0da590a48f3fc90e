import type { createAnthropic } from '@ai-sdk/anthropic'
import type { createOpenAI } from '@ai-sdk/openai'
import type {
  EmbeddingModelV2,
  EmbeddingModelV3,
  EmbeddingModelV4,
  LanguageModelV2,
  LanguageModelV2Content,
  LanguageModelV2StreamPart,
  LanguageModelV3,
  LanguageModelV3Content,
  LanguageModelV3StreamPart,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import type { createOpenAI as createOpenAI2 } from 'ai-sdk-openai-v2'
import type { createOpenAI as createOpenAI3 } from 'ai-sdk-openai-v3'
import { expectTypeOf } from 'expect-type'
import type { CallOptions, EmbeddingModel, GeneratedPart, PromptFile, StreamPart, Version } from '../src/sdk.ts'

// What is heeded of a stream stands in src/sdk.ts as each version of the SDK has it; other types of parts are passed over.
type Heeded<P> = Extract<P, { type: StreamPart['type'] }>
expectTypeOf<Heeded<LanguageModelV4StreamPart>>().toExtend<StreamPart>()
expectTypeOf<Heeded<LanguageModelV3StreamPart>>().toExtend<StreamPart>()
expectTypeOf<Heeded<LanguageModelV2StreamPart>>().toExtend<StreamPart>()
type HeededWhole<P> = Extract<P, { type: GeneratedPart['type'] }>
expectTypeOf<HeededWhole<LanguageModelV4Content>>().toExtend<GeneratedPart>()
expectTypeOf<HeededWhole<LanguageModelV3Content>>().toExtend<GeneratedPart>()
expectTypeOf<HeededWhole<LanguageModelV2Content>>().toExtend<GeneratedPart>()
expectTypeOf<(LanguageModelV4 | LanguageModelV3 | LanguageModelV2)['specificationVersion']>().toEqualTypeOf<Version>()

// Models for embeddings, and the fields of a call that are new.
expectTypeOf<EmbeddingModelV4>().toExtend<EmbeddingModel>()
expectTypeOf<EmbeddingModelV3>().toExtend<EmbeddingModel>()
type Embeds2 = EmbeddingModelV2<string>
expectTypeOf<Pick<Embeds2, 'specificationVersion' | 'provider' | 'maxEmbeddingsPerCall'>>().toExtend<
  Omit<EmbeddingModel, 'doEmbed'>
>()
expectTypeOf<Awaited<ReturnType<Embeds2['doEmbed']>>['embeddings']>().toExtend<readonly (readonly number[])[]>()
type Fields = 'stopSequences' | 'topP' | 'topK' | 'seed' | 'frequencyPenalty' | 'presencePenalty' | 'reasoning'
expectTypeOf<Pick<CallOptions, Fields>>().toExtend<Pick<LanguageModelV4CallOptions, Fields>>()
type File4 = Extract<Extract<LanguageModelV4CallOptions['prompt'][number], { role: 'user' }>['content'][number], { type: 'file' }>
expectTypeOf<Exclude<PromptFile['data'], string | URL>>().toExtend<File4['data']>()

// The packages that the tests are run with speak the versions that they stand for.
type Spoken<F extends (...args: never[]) => { languageModel(id: string): { specificationVersion: string } }> = ReturnType<
  ReturnType<F>['languageModel']
>['specificationVersion']
expectTypeOf<Spoken<typeof createOpenAI>>().toEqualTypeOf<'v4'>()
expectTypeOf<Spoken<typeof createAnthropic>>().toEqualTypeOf<'v4'>()
expectTypeOf<Spoken<typeof createOpenAI3>>().toEqualTypeOf<'v3'>()
expectTypeOf<Spoken<typeof createOpenAI2>>().toEqualTypeOf<'v2'>()
