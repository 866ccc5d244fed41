"""Operations: steps done one after the other by one state service, each stored before and after it is done."""
