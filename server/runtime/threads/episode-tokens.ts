// The tape of a sealed episode for people to read: each token with its text, and where the chains are cut.
import { readRow } from '../../../protocol/delivery.ts'
import type { Sample } from '../../../protocol/group.ts'
import { type KeptEpisode, trajectoryOf } from '../../../protocol/sealed.ts'
import { tokenTexts } from '../../../rollout/chat/token-texts.ts'
import type { Engine } from '../../../rollout/episode.ts'

export interface EpisodeTokens {
  /** `texts` has one text for each id: joined, they are the chain's. Null where the model's tokenizer is not at hand. */
  samples: (Sample & { texts: string[] | null })[]
}

export function episodeTokens(episode: KeptEpisode, engine: Engine): EpisodeTokens {
  const { policy } = JSON.parse(new TextDecoder().decode(trajectoryOf(episode)))
  const model = engine.chatModel(policy.backend)
  const { samples } = readRow(episode.blob.subarray(0, episode.header.row_bytes))
  return {
    samples: samples.map((sample) => ({
      ...sample,
      texts: model && tokenTexts(sample.ids, model.decode),
    })),
  }
}
